"""The identity of a pretraining run's token store: saved at the start, compared on a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.store.token_store import OpenStore


def store_identity(store: OpenStore) -> dict[str, Any]:
    """Hashes: SHA-256 of each corpus file, that of the tokenizer, and those of all arrays."""
    manifest = store.manifest
    files = {source.name: source.sha256 for source in manifest.sources}
    return {"vocabulary": manifest.tokenizer_hash, "files": files, "arrays": manifest.hashes}


def check_same_store(before: dict[str, Any], store: OpenStore, path: Path) -> None:
    """Check on a resume that the store has the content that is saved in `path`.

    Raises:
        UserError: the store was built again from something else, which gives other batches.
    """
    now = store_identity(store)
    names = sorted(before["files"] | now["files"])
    changed = [name for name in names if before["files"].get(name) != now["files"].get(name)]
    if before["vocabulary"] != now["vocabulary"]:
        changed.append("the vocabulary")
    if not changed and before["arrays"] != now["arrays"]:
        changed.append(
            "the same text and vocabulary, but other sentences or tokens, by another version of a library"
        )
    if changed:
        raise UserError(
            f"cannot resume: {store.folder} was built again since the start of the run, and these changed: "
            f"{', '.join(changed)} ({path}). Restore them and build the store again (bertcli prepare CONFIG "
            "--overwrite), or start a new run in another output_dir"
        )
