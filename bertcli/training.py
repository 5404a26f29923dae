"""A config -> a trained model, what is said at its end, and its report: `bertcli pretrain` and `finetune`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, load_config
from bertcli.config.run_config import check_continues
from bertcli.config.schema import PretrainConfig
from bertcli.distributed import ranks
from bertcli.errors import UserError
from bertcli.evaluation.tables import scores_json, scores_table
from bertcli.report.write import write_report_if_asked
from bertcli.runs import finetuning, pretraining
from bertcli.runs.first_try import mask_command, predict_command
from bertcli.runs.seeds import finetune_seeds
from bertcli.store.matching import store_folder
from bertcli.store.token_store import open_store
from bertcli.terminal import say

Given = Path | Mapping[str, Any]
"""A config file, the folder of a run, or the keys of a config."""
Schema = TypeVar("Schema", bound=BaseModel)


_training = threading.Lock()
"""Held by the run of this process: its dropout is drawn from torch's generator, which all threads share."""


@contextmanager
def _alone() -> Iterator[None]:
    """Raises `UserError` while another thread of this process trains."""
    if not _training.acquire(blocking=False):
        raise UserError(
            "another run is training in this process, and both would draw from one random generator, so "
            "that neither could be repeated; wait for its end, or start this run in a process of its own"
        )
    try:
        yield
    finally:
        _training.release()


@_alone()
def pretrain(given: Given, overrides: Sequence[str], resume: bool, overwrite: bool) -> dict[str, Any]:
    """Train on raw text; call it inside `ranks.joined`. The result has the model's folder.

    `overrides`: `section.key=value`. Raises `UserError` as `load_config` and `runs.pretraining.pretrain`.
    """
    resume, overwrite = ranks.after_restart(resume, overwrite)
    config = ranks.on_first(lambda: _checked(PretrainConfig, given, overrides, resume=resume))
    model = pretraining.pretrain(config, resume, overwrite)
    if ranks.is_first():
        write_report_if_asked(config)
    say(f"the model is in {model}; try: {mask_command(model, open_store(store_folder(config)))}")
    return {"model": str(model)}


@_alone()
def finetune(given: Given, overrides: Sequence[str], resume: bool, overwrite: bool) -> dict[str, Any]:
    """Train on labeled data, as `pretrain`; the result also has the dev data's scores and the verdict."""
    resume, overwrite = ranks.after_restart(resume, overwrite)
    config = ranks.on_first(lambda: _checked(FinetuneConfig, given, overrides, resume=resume))
    start = finetune_seeds if config.seeds else finetuning.finetune
    done = start(config, resume, overwrite)
    if done.scores is not None:
        say(scores_table(done.scores))
    if done.verdict is not None:
        say(done.verdict.line)
    if ranks.is_first():
        write_report_if_asked(config)
    say(f"the model is in {done.model}; try: {predict_command(done.model, done.examples)}")
    scores = scores_json(done.scores) if done.scores else {}
    verdict = {"verdict": done.verdict.as_json()} if done.verdict else {}
    return {"model": str(done.model), **scores, **verdict}


def _checked(schema: type[Schema], given: Given, overrides: Sequence[str], resume: bool) -> Schema:
    if not isinstance(given, Path):
        return check_config(schema, dict(given), "the config")
    check_continues(given, resume, "pretrain" if schema is PretrainConfig else "finetune")
    return load_config(schema, given, list(overrides))
