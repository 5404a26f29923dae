"""The model that a fine-tuning run starts with: the given one, else a published one for the language."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertcli.errors import UserError
from bertcli.hf.hub import is_hub_id
from bertcli.hf.locate import check_folder, resolve_model

_PUBLISHED = {"en": "google-bert/bert-base-uncased", "zh": "google-bert/bert-base-chinese"}
_CASED = {"en": "google-bert/bert-base-cased"}
"""For names, whose capitals tell."""
_MULTILINGUAL = "FacebookAI/xlm-roberta-base"
_NAMED = 3


@dataclass(frozen=True)
class ModelChoice:
    """A model.

    Attributes:
        name: as a config names it.
        folder: None: it is not on this machine.
    """

    name: str
    folder: Path | None
    comment: str


def choose_model(given: str | None, language: str, task: str) -> ModelChoice:
    """The model. A published one is not downloaded, unless it is `given`.

    Raises `UserError` for a given folder that holds no model.
    """
    here = _finished_runs()
    also = f"; or a model of yours: {', '.join(here[:_NAMED])}" if here else ""
    if given is not None:
        return _given(given)
    published = _CASED if task == "token-classification" and language in _CASED else _PUBLISHED
    name = published.get(language, _MULTILINGUAL)
    why = (
        f"published for {language}"
        if name in published.values()
        else f"published for 100 languages ({language})"
    )
    folder = _cached(name)
    where = "" if folder else "; the run downloads it from the Hugging Face hub, which needs a network"
    return ModelChoice(name, folder, f"{why}{where}{also}")


def _given(name: str) -> ModelChoice:
    try:
        return ModelChoice(name, resolve_model(name), "given with --model")
    except UserError as error:
        if not is_hub_id(name):
            raise
        return ModelChoice(name, None, f"given with --model, and not available here now: {error}")


def _finished_runs() -> list[str]:
    return sorted(str(path.parent) for path in Path("runs").glob("*/model/config.json"))


def _cached(name: str) -> Path | None:
    """The folder of a published model in the local cache of the hub."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json")
    if not isinstance(found, str):
        return None
    try:
        check_folder(Path(found).parent)
    except UserError:
        return None
    return Path(found).parent
