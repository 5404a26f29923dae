"""The files of a model -> the model with all heads that they hold together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import nn

from bertcli.hf.fill import LoadReport, build_from
from bertcli.hf.lengths import trained_length
from bertcli.hf.model_files import Declaration, ModelFiles
from bertcli.hf.task_config import task_type
from bertcli.hf.task_folder import declare_task, task_model
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import PooledModel


@dataclass(frozen=True)
class WithHeads:
    """A model with all heads that its files hold; `declared` is for `write_model_files`."""

    model: nn.Module
    report: LoadReport
    declared: Declaration


def without_heads(files: ModelFiles) -> WithHeads:
    """The encoder alone; raises `UserError` as `fill.build_from`."""
    model, report = build_from(files, lambda: PooledModel(files.architecture, pooler=False))
    return WithHeads(model, report, Declaration("encoder", trained_length=trained_length(files.where.parent)))


def with_heads(files: ModelFiles) -> WithHeads:
    """Raises `UserError` as `fill.build_from`."""
    length = trained_length(files.where.parent)
    if task_type(files.config, files.family) is not None:
        task = task_model(files)
        return WithHeads(
            task.model, task.report, declare_task(task.settings, task.labels, trained_length=length)
        )
    sizes, pooler = files.architecture, files.holds("pooler.dense.weight")
    pairs = pooler and files.holds("pair_head.dense.weight")
    if files.holds("mlm_head.bias"):
        sizes = replace(sizes, mask_decoder=files.holds_mask_decoder)
        model, report = build_from(files, lambda: PretrainingModel(sizes, pairs))
        kind = "pretraining" if pairs else "masked-lm"
        return WithHeads(model, report, Declaration(kind, trained_length=length))
    if files.holds("rtd_head.dense.weight") and "discriminator" in files.family.classes:
        model, report = build_from(files, lambda: PooledModel(sizes, pooler=False, rtd_head=True))
        return WithHeads(model, report, Declaration("discriminator", trained_length=length))
    model, report = build_from(files, lambda: PooledModel(sizes, pooler, pair_head=pairs))
    return WithHeads(model, report, Declaration("pairs" if pairs else "encoder", trained_length=length))
