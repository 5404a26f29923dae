"""Which token store a pretraining run learns from: noted when it starts, compared when it is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.store.token_store import OpenStore


def store_identity(store: OpenStore) -> dict[str, Any]:
    """By hashes: SHA-256 of each file's bytes, the tokenizer's own, and that of all arrays."""
    manifest = store.manifest
    files = {source.name: source.sha256 for source in manifest.sources}
    return {"vocabulary": manifest.tokenizer_hash, "files": files, "arrays": manifest.hashes}


def check_same_store(before: dict[str, Any], store: OpenStore, path: Path) -> None:
    """On a resume: the store holds what it held when the run began and noted it in `path`.

    Raises:
        UserError: it was built from something else since: the stream would be another.
    """
    now = store_identity(store)
    names = sorted(before["files"] | now["files"])
    changed = [name for name in names if before["files"].get(name) != now["files"].get(name)]
    if before["vocabulary"] != now["vocabulary"]:
        changed.append("the vocabulary")
    if not changed and before["arrays"] != now["arrays"]:
        changed.append("the same text and vocabulary, but cut up otherwise, by another version of a library")
    if changed:
        raise UserError(
            f"cannot resume: {store.folder} was built anew since the run began, from something else: "
            f"{', '.join(changed)} ({path}). Put that back and build the store again (bertcli prepare CONFIG "
            "--overwrite), or start a new run in another output_dir"
        )
