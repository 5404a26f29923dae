"""Whether a store matches a config: options, files, sizes and times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertcli.config.schema import CorpusConfig, PretrainConfig
from bertcli.errors import UserError
from bertcli.families.registry import UNNAMED
from bertcli.files import file_hash
from bertcli.owned.run_layout import FILES, FOLDERS, RunLayout
from bertcli.store.chunks import stat_source
from bertcli.store.manifest import Manifest, SourceRecord
from bertcli.store.vocabulary import given_tokenizer, load_given_tokenizer
from bertcli.text.sources import Source, find_present

WHAT_NOW = (
    "Build the store again with bertcli prepare CONFIG --overwrite, or name another folder in corpus.store"
)


def store_folder(config: PretrainConfig) -> Path:
    """The folder of the config's store: `corpus.store`, or `store` in `output_dir`."""
    return Path(config.corpus.store or RunLayout(Path(config.output_dir)).store).expanduser()


def output_paths(config: PretrainConfig) -> set[Path]:
    """Real paths that a run of `config` writes: its folder, the files and folders in it, and its store."""
    root, store = Path(config.output_dir).expanduser(), store_folder(config)
    paths = [root, *(root / name for name in (*FILES, *FOLDERS)), store]
    return {path.resolve() for path in paths} | {store.resolve().with_name(f"{store.resolve().name}.partial")}


def store_options(config: PretrainConfig) -> dict[str, Any]:
    """Dotted key -> value, for every key that a store depends on."""
    corpus = config.corpus.model_dump(mode="json", exclude={"store", "general"})
    for key in ("encodings", "bad_bytes"):  # as before these keys were there
        if getattr(config.corpus, key) == CorpusConfig.model_fields[key].default:
            del corpus[key]
    options = {f"corpus.{key}": value for key, value in corpus.items()}
    tokenizer = config.tokenizer
    if config.model.init_from is not None:
        return options | {"model.init_from": config.model.init_from}
    options["tokenizer.path"] = tokenizer.path
    if tokenizer.path is None:
        options["tokenizer.vocab_size"] = tokenizer.vocab_size
        options["tokenizer.kind"] = tokenizer.kind
        options["model.family"] = config.model.family or UNNAMED
    return options | {
        "tokenizer.lowercase": tokenizer.lowercase,
        "tokenizer.strip_accents": tokenizer.strips_accents(),
    }


def check_matches(folder: Path, manifest: Manifest, config: PretrainConfig) -> None:
    """Raise `UserError` that names every difference between a store and the config.

    Files are compared by size and time; a file of which only the time differs is read and hashed. A new file
    is a difference, a missing one is not.
    """
    problems = _different_options(manifest.options, store_options(config))
    if not problems:
        problems = different_files(manifest.sources, find_present(config.corpus.files, output_paths(config)))
        path = given_tokenizer(config)
        exists = path is not None and Path(path).expanduser().exists()
        tokenizer = load_given_tokenizer(config) if exists else None
        if tokenizer is not None and tokenizer.hash != manifest.tokenizer_hash:
            problems.append(f"{path}: the tokenizer has changed")
    if problems:
        shown = [*problems[:10], f"and {len(problems) - 10} more"] if len(problems) > 10 else problems
        raise UserError(
            "\n  ".join([f"{folder}: the store was built from something else:", *shown, WHAT_NOW])
        )


def _different_options(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    absent = "not given"
    return [
        f"{key}: {before.get(key, absent)!r} in the store, {now.get(key, absent)!r} in the config"
        for key in before | now
        if before.get(key, absent) != now.get(key, absent)
    ]


def different_files(records: Sequence[SourceRecord], present: Sequence[Source]) -> list[str]:
    """A line for each file that is not as its record says, or has none."""
    known = {record.name: record for record in records}
    return [problem for source in present if (problem := _difference(known.get(source.name), source))]


def _difference(record: SourceRecord | None, source: Source) -> str | None:
    if record is None:
        return f"{source.path}: this file is new"
    now = stat_source(source)
    if now.size != record.size:
        return f"{source.path}: the file changed, from {record.size:,} bytes to {now.size:,}"
    if now.mtime_ns != record.mtime_ns and file_hash(source.path) != record.sha256:
        return f"{source.path}: the file changed; its size is the same"
    return None
