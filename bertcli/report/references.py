"""A run -> what its scores are compared with: chance, word frequencies, an answer that reads no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bertcli.config.ramp import ends
from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.hf.new_model import new_architecture
from bertcli.report.chart import Level
from bertcli.report.run_view import RunView
from bertcli.runs.metric_rows import term_key
from bertcli.runs.objectives import build_task
from bertcli.tasks.reference import Reference


def references_of(view: RunView) -> tuple[Reference, ...]:
    """The references of the terms of a pretraining run; none without its store."""
    config, manifest = view.config, view.manifest
    if not isinstance(config, PretrainConfig) or manifest is None:
        return ()
    objective, fresh = config.data.objective, config.model.init_from is None and config.distillation is None
    try:
        sizes = new_architecture(config.model, manifest.vocab_size, objective=objective)
    except UserError:  # of a folder with sizes that a new model of the family cannot have
        return ()
    task = build_task(objective, config.training.rtd_weight, mask_rate=ends(config.data.mask_rate)[1])
    return task.references(sizes.generator or sizes, manifest.unigram_entropy, fresh=fresh)


def levels_of(views: Sequence[RunView]) -> Mapping[str, list[Level]]:
    """Key of a log's row -> the reference lines of its chart; a line that several runs share is one."""
    found: dict[str, dict[tuple[str, float], list[tuple[str, Level]]]] = {}
    for view in views:
        for key, level in _levels(view):
            same = (level.label, round(level.value, 2))
            found.setdefault(key, {}).setdefault(same, []).append((view.name, level))
    return {
        key: [_named(lines, alone=len(lines) < len(views) and len(lines) == 1) for lines in groups.values()]
        for key, groups in found.items()
    }


def _named(lines: Sequence[tuple[str, Level]], alone: bool) -> Level:
    """The line that some runs share; of one run among several, with its name."""
    name, level = lines[0]
    return Level(level.value, f"{level.label} ({name})") if alone else level


def _levels(view: RunView) -> list[tuple[str, Level]]:
    if not isinstance(view.config, PretrainConfig):
        return [(metric, Level(value, "baseline")) for metric, value in view.baseline.items()]
    levels = []
    for each in references_of(view):
        loss, accuracy = (term_key(each.term, what) for what in ("loss", "accuracy"))
        what = "word frequencies alone" if each.predicts_words else "chance"
        levels.append((loss, Level(each.chance_loss, what)))
        if each.first_loss is not None and abs(each.first_loss - each.chance_loss) > 0.05:
            levels.append((loss, Level(each.first_loss, "a fresh model")))
        if each.chance_accuracy is not None:
            levels.append((accuracy, Level(each.chance_accuracy, "chance")))
    return levels
