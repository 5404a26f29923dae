"""A config file of either kind -> a checked pretraining or fine-tuning config, by the sections it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, read_config
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError


class _Sections(BaseModel):
    corpus: Any = None
    task: Any = None


def load_either_config(path: Path, overrides: list[str] | None = None) -> PretrainConfig | FinetuneConfig:
    """Load the config of a pretraining or of a fine-tuning run.

    Raises:
        UserError: the errors of `load_config`, or the file has a section of neither kind, or of both.
    """
    value, where = read_config(path, overrides)  # once, because it may be a pipe
    sections = check_config(_Sections, value, where)
    if (sections.corpus is None) == (sections.task is None):
        raise UserError(
            f"{path}: a pretraining config has a section corpus, a fine-tuning config a section task; this "
            f"one has {'neither' if sections.corpus is None else 'both'}"
        )
    return check_config(FinetuneConfig if sections.corpus is None else PretrainConfig, value, where)
