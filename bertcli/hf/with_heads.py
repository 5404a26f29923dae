"""The files of a model -> the model with all heads that they hold together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from bertcli.hf.fill import LoadReport, build_from
from bertcli.hf.lengths import TRAINED_LENGTH
from bertcli.hf.model_files import ModelFiles
from bertcli.hf.task_config import task_keys, task_type
from bertcli.hf.task_folder import task_model
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import PooledModel


@dataclass(frozen=True)
class WithHeads:
    """A model with all heads that its files hold; `kind` and `keys` are for `write_model_files`."""

    model: nn.Module
    report: LoadReport
    kind: str
    keys: Mapping[str, Any]


def with_heads(files: ModelFiles) -> WithHeads:
    """Raises `UserError` as `fill.build_from`."""
    if task_type(files.config, files.family) is not None:
        task = task_model(files)
        keys = task_keys(task.settings, task.labels)
        return WithHeads(task.model, task.report, task.settings.type, keys=keys)
    sizes, pooler = files.architecture, files.holds("pooler.dense.weight")
    pairs = pooler and files.holds("pair_head.dense.weight")
    if files.holds("mlm_head.bias"):
        sizes = replace(sizes, mask_decoder=files.holds_mask_decoder)
        model, report = build_from(files, lambda: PretrainingModel(sizes, pairs))
        return WithHeads(model, report, "pretraining" if pairs else "masked-lm", keys=_trained_length(files))
    if files.holds("rtd_head.dense.weight") and "discriminator" in files.family.classes:
        model, report = build_from(files, lambda: PooledModel(sizes, pooler=False, rtd_head=True))
        return WithHeads(model, report, "discriminator", keys=_trained_length(files))
    model, report = build_from(files, lambda: PooledModel(sizes, pooler, pair_head=pairs))
    return WithHeads(model, report, "pairs" if pairs else "encoder", keys={})


def _trained_length(files: ModelFiles) -> dict[str, Any]:
    return {key: value for key, value in files.config.items() if key == TRAINED_LENGTH}
