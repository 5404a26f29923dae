"""A model's own run -> how its text was read: the defaults of `evaluate --corpus`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertcli.config.load import load_config
from bertcli.config.schema import CorpusConfig, DataConfig, PretrainConfig
from bertcli.errors import UserError
from bertcli.hf.config_file import read_architecture
from bertcli.hf.lengths import trained_length
from bertcli.owned.run_layout import RunLayout, run_of_model
from bertcli.samples import SAMPLES

_LAYOUT = ("format", "text_key", "encoding", "document", "join_lines")
"""The keys of a corpus that describe the layout of its files."""


def as_in_the_run(
    folder: Path, given: Mapping[str, Any], max_length: int | None, report: Callable[[str], None]
) -> tuple[dict[str, Any], int]:
    """The user's values, and the others from the run that trained the model, which `report` is called with.

    Args:
        folder: a model folder: a run's `model/`, one of its checkpoints', or any other.
        given: keys of `config.schema.CorpusConfig`, with `files`.
        max_length: None: as the model was trained.

    Returns:
        The keys of the corpus, and the number of tokens in a row.
    """
    corpus = dict(given)
    config = _run_config(folder, report)
    if config is not None:
        path, run = config
        adopted = _missing(given, run.corpus)
        corpus |= adopted
        shown = [f"{key} {value}" for key, value in adopted.items() if _matters(key, corpus)]
        if shown:
            report(f"reading: {', '.join(shown)}, as in {path}")
    if max_length is None:
        max_length = trained_length(folder)
        source = f", the training length in {folder / 'tokenizer_config.json'}"
        if max_length is None:
            positions = read_architecture(folder / "config.json").usable_positions
            max_length = min(DataConfig().max_length, positions)
            source = "; the model's training length is unknown (--max-length)"
        report(f"reading: rows of {max_length} tokens{source}")
    return corpus, max_length


def _run_config(folder: Path, report: Callable[[str], None]) -> tuple[Path, PretrainConfig] | None:
    """The config of the pretraining run that `folder` belongs to, with its path; None: there is none."""
    run = run_of_model(folder)
    if run is None or not (path := RunLayout(run).config).is_file():
        return None
    try:
        return path, load_config(PretrainConfig, path)
    except UserError:
        report(f"note: {path} is not the config of a pretraining run, and is ignored")
        return None


def _missing(given: Mapping[str, Any], run: CorpusConfig) -> dict[str, Any]:
    """The run's values of keys that were not given, if they match those that were."""
    keys: Sequence[str] = ("language", *_LAYOUT)
    if all(name in SAMPLES and not Path(name).exists() for name in given["files"]):
        keys = ("language",)
    elif given.get("format", run.format) != run.format:
        keys = ("language", "text_key", "encoding")
    elif given.get("document", run.document) != run.document:
        keys = ("language", "format", "text_key", "encoding")
    return {key: getattr(run, key) for key in keys if key not in given}


def _matters(key: str, corpus: Mapping[str, Any]) -> bool:
    """Whether a key has an effect; `corpus` is not checked yet."""
    if key == "text_key":
        return corpus["format"] in ("jsonl", "parquet")
    if key == "document":
        return corpus["format"] == "text"
    return key != "join_lines" or bool(corpus["join_lines"])
