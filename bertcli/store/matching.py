"""Whether a store is still the one that a config asks for: options, files, sizes and times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.files import file_hash
from bertcli.owned.run_layout import FILES, FOLDERS, RunLayout
from bertcli.store.chunks import stat_source
from bertcli.store.manifest import Manifest, SourceRecord
from bertcli.store.vocabulary import given_tokenizer, load_given_tokenizer
from bertcli.text.sources import Source, find_present

WHAT_NOW = (
    "Build the store anew with bertcli prepare CONFIG --overwrite, or name another folder in corpus.store"
)


def store_folder(config: PretrainConfig) -> Path:
    """Where the config's store stands: `corpus.store`, or `store` in `output_dir`."""
    return Path(config.corpus.store or RunLayout(Path(config.output_dir)).store).expanduser()


def output_paths(config: PretrainConfig) -> set[Path]:
    """Real paths of what a run of `config` writes: its folder, what stands there, and its store."""
    root, store = Path(config.output_dir).expanduser(), store_folder(config)
    paths = [root, *(root / name for name in (*FILES, *FOLDERS)), store]
    return {path.resolve() for path in paths} | {store.resolve().with_name(f"{store.resolve().name}.partial")}


def store_options(config: PretrainConfig) -> dict[str, Any]:
    """Dotted key -> value, for every key that shapes a store."""
    corpus = config.corpus.model_dump(mode="json", exclude={"store"})
    options = {f"corpus.{key}": value for key, value in corpus.items()}
    tokenizer = config.tokenizer
    if config.model.init_from is not None:
        return options | {"model.init_from": config.model.init_from}
    options["tokenizer.path"] = tokenizer.path
    if tokenizer.path is None:
        options["tokenizer.vocab_size"] = tokenizer.vocab_size
    return options | {
        "tokenizer.lowercase": tokenizer.lowercase,
        "tokenizer.strip_accents": tokenizer.strips_accents(),
    }


def check_matches(folder: Path, manifest: Manifest, config: PretrainConfig) -> None:
    """Raise `UserError` naming all that differs between a store and what the config now asks for.

    Files are judged by size and time; one whose time alone is new is read and hashed. A file that is
    gone is no difference, a new one is.
    """
    problems = _different_options(manifest.options, store_options(config))
    if not problems:
        problems = _different_files(manifest.sources, find_present(config.corpus.files, output_paths(config)))
        path = given_tokenizer(config)
        if path is not None and _tokenizer_changed(config, path, manifest):
            problems.append(f"{path}: the tokenizer changed since")
    if problems:
        shown = [*problems[:10], f"and {len(problems) - 10} more"] if len(problems) > 10 else problems
        raise UserError(
            "\n  ".join([f"{folder}: the store was built from something else:", *shown, WHAT_NOW])
        )


def _tokenizer_changed(config: PretrainConfig, path: str, manifest: Manifest) -> bool:
    if not Path(path).expanduser().exists():
        return False
    now = load_given_tokenizer(config)
    return now is not None and now.hash != manifest.tokenizer_hash


def _different_options(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    keys = [*before, *(key for key in now if key not in before)]
    absent = "not given"
    return [
        f"{key}: {before.get(key, absent)!r} in the store, {now.get(key, absent)!r} in the config"
        for key in keys
        if before.get(key, absent) != now.get(key, absent)
    ]


def _different_files(records: Sequence[SourceRecord], present: Sequence[Source]) -> list[str]:
    known = {record.name: record for record in records}
    return [problem for source in present if (problem := _difference(known.get(source.name), source))]


def _difference(record: SourceRecord | None, source: Source) -> str | None:
    if record is None:
        return f"{source.path}: this file was not there"
    now = stat_source(source)
    if now.size != record.size:
        return f"{source.path}: the file changed, from {record.size:,} bytes to {now.size:,}"
    if now.mtime_ns != record.mtime_ns and file_hash(source.path) != record.sha256:
        return f"{source.path}: the file changed; its size is the same"
    return None
