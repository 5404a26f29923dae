"""A model's own run -> how its text was read: what `evaluate --corpus` takes without options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.config.load import load_config
from bertcli.config.schema import CorpusConfig, DataConfig, PretrainConfig
from bertcli.errors import UserError
from bertcli.hf.config_file import read_architecture
from bertcli.hf.lengths import trained_length
from bertcli.owned.run_layout import RunLayout, run_of_model
from bertcli.samples import SAMPLES

_LAYOUT = ("format", "text_key", "encoding", "document", "join_lines")
"""The keys of a corpus that tell how its files are laid out; `language` tells what is in them."""


class Reading(NamedTuple):
    """How a run reads its text."""

    corpus: dict[str, Any]
    """Keys of `config.schema.CorpusConfig`."""
    max_length: int
    """Tokens in a row."""


def as_in_the_run(
    folder: Path, given: Mapping[str, Any], max_length: int | None, report: Callable[[str], None]
) -> Reading:
    """What the user gave, and the rest from the run that made the model; `report` is told what that is.

    Args:
        folder: a model folder: a run's `model/`, one of its checkpoints', or any other.
        given: keys of `CorpusConfig`, `files` among them.
        max_length: None: as the model was trained.
    """
    corpus, notes = dict(given), []
    config = _run_config(folder, report)
    if config is not None:
        path, run = config
        taken = _missing(given, run.corpus)
        corpus |= taken
        said = [f"{key} {value}" for key, value in taken.items() if _matters(key, corpus)]
        notes += [f"{', '.join(said)}, as in {path}"] if said else []
    if max_length is None:
        max_length = trained_length(folder)
        source = f", as {folder / 'config.json'} says that the model was trained"
        if max_length is None:
            positions = read_architecture(folder / "config.json").usable_positions
            max_length = min(DataConfig().max_length, positions)
            source = "; the model does not say on which it was trained (--max-length)"
        notes.append(f"rows of {max_length} tokens{source}")
    for note in notes:
        report(f"reading: {note}")
    return Reading(corpus, max_length)


def _run_config(folder: Path, report: Callable[[str], None]) -> tuple[Path, PretrainConfig] | None:
    """The config of the pretraining run that `folder` belongs to, with its path; None: it belongs to none."""
    run = run_of_model(folder)
    if run is None:
        return None
    path = RunLayout(run).config
    if not path.is_file():
        return None
    try:
        return path, load_config(PretrainConfig, path)
    except UserError:
        report(f"note: {path} is no config of a pretraining run, and is passed over")
        return None


def _missing(given: Mapping[str, Any], run: CorpusConfig) -> dict[str, Any]:
    """The run's values of what was not given, as far as they go with what was."""
    keys: Sequence[str] = ("language", *_LAYOUT)
    if all(name in SAMPLES and not Path(name).exists() for name in given["files"]):
        keys = ("language",)
    elif given.get("format", run.format) != run.format:
        keys = ("language", "text_key", "encoding")
    elif given.get("document", run.document) != run.document:
        keys = ("language", "format", "text_key", "encoding")
    return {key: getattr(run, key) for key in keys if key not in given}


def _matters(key: str, corpus: Mapping[str, Any]) -> bool:
    """Of keys that nobody has checked yet."""
    if key == "text_key":
        return corpus["format"] in ("jsonl", "parquet")
    if key == "document":
        return corpus["format"] == "text"
    return key != "join_lines" or bool(corpus["join_lines"])
