"""The content of a run folder for a report: config, log, verdict, state, and its runs of seeds or folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import PretrainRecipe, load_config_of_run
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.manifest import Manifest, read_manifest
from bertcli.corpus.matching import store_folder
from bertcli.folders.run_layout import ALL_ROWS, KeptVerdict, RunLayout, read_folds, read_verdict
from bertcli.system.errors import UserError
from bertcli.system.files import is_locked, looked_in
from bertcli.system.terminal import number
from bertcli.training.metrics_log import read_metrics

Row = dict[str, Any]
"""A row of metrics.jsonl."""


@dataclass(frozen=True)
class State:
    """The state of a run.

    Attributes:
        step: the last logged step; for several runs, the sum of theirs.
        planned: the steps of the whole run; None: the log does not show them yet.
        parts: the number of finished parts and of all parts, and what they are; None: there is one run.
    """

    word: Literal["finished", "running", "stopped"]
    step: int
    planned: int | None = None
    parts: tuple[int, int, str] | None = None

    @property
    def steps(self) -> str:
        """The text on the steps, which follows the word."""
        if not self.step:
            return "before the first logged step"
        of = "" if self.planned is None or self.word == "finished" else f" of {number(self.planned)}"
        parts = "" if self.parts is None else " with {} of {} {}".format(*self.parts)
        return f"after {number(self.step)}{of} steps{parts}"


@dataclass(frozen=True)
class RunView:
    """The content of one run folder.

    Attributes:
        name: the name of the folder, by which readers tell several runs apart.
        rows: the rows of metrics.jsonl; empty if `several` has them.
        verdict: the verdict of the run at its end; None: it has not ended, or goes on.
        several: the runs of seeds, or of folds and all rows, which have their own rows.
        out_of_fold: the scores of all out-of-fold answers; empty: there are no folds that have ended.
        manifest: the manifest of the token store; None: it is gone or damaged, or the task is labeled.
    """

    root: Path
    name: str
    config: PretrainRecipe | FinetuneConfig
    rows: Sequence[Row]
    state: State
    verdict: KeptVerdict | None
    several: tuple[RunView, ...] = ()
    out_of_fold: Mapping[str, Any] = field(default_factory=dict)
    manifest: Manifest | None = None

    @property
    def kind(self) -> str:
        """`pretraining`, or the type of the labeled task; runs of one kind can be compared."""
        return "pretraining" if isinstance(self.config, PretrainConfig) else self.config.task.type

    @property
    def parts(self) -> tuple[RunView, ...]:
        """The runs with rows: those of seeds or folds, or this one."""
        return self.several or (self,)

    @property
    def baseline(self) -> Mapping[str, float]:
        """Metric -> the score of an answer that reads no text; empty: unknown."""
        return next((part.verdict.baseline for part in self.parts if part.verdict is not None), {})

    def split(self, name: str) -> list[Row]:
        """The rows of `train` or `heldout`."""
        return [row for row in self.rows if row["split"] == name]


def read_run(root: Path) -> RunView:
    """Read a run folder; nothing in it is changed.

    Raises:
        UserError: there is no run, or one of its files is damaged.
    """
    layout = RunLayout(root)
    if not root.is_dir():
        what = "is a file" if root.exists() else f"no such folder{looked_in(root)}"
        raise UserError(f"{root}: {what}; give the folder of a run, its output_dir")
    if not layout.config.is_file():
        hint = f"; did you mean {root.parent}?" if RunLayout(root.parent).config.is_file() else ""
        raise UserError(
            f"{root}: is not the folder of a run: it has no {layout.config.name}. Give the output_dir of "
            f"bertcli pretrain or finetune{hint}"
        )
    if layout.trials.is_file():
        raise UserError(f"{root}: is a search, and its page is {layout.report}; give the folder of a trial")
    config = load_config_of_run(layout.config)
    names = [] if isinstance(config, PretrainConfig) or layout.is_part else [*config.parts]
    is_of_folds = bool(names) and isinstance(config, FinetuneConfig) and config.folds is not None
    folders = [layout.part(name) for name in (*names, *([ALL_ROWS] if is_of_folds else []))]
    several = tuple(read_run(folder) for folder in folders if RunLayout(folder).config.is_file())
    rows = read_metrics(layout.metrics)
    verdict = read_verdict(layout.verdict)
    if verdict is not None and rows and verdict.step < rows[-1]["step"]:
        verdict = None  # it is the verdict of a shorter run, which then went on
    if folders:
        done = sum(part.state.word == "finished" for part in several)
        what = "runs" if is_of_folds else "seeds"
        step, planned, parts = sum(part.state.step for part in several), None, (done, len(folders), what)
        has_ended = done == len(folders)
    else:
        step, planned = rows[-1]["step"] if rows else 0, _planned(config, rows)
        is_last = planned is not None and step >= planned and layout.model.is_dir()
        parts, has_ended = None, verdict is not None or is_last
    ended: Literal["finished", "stopped"] = "finished" if has_ended else "stopped"
    word = "running" if is_locked(layout.lock) else ended
    manifest = None
    if isinstance(config, PretrainConfig):
        with suppress(UserError, OSError):
            manifest = read_manifest(store_folder(config))
    out_of_fold = read_folds(layout)["out_of_fold"] if is_of_folds and layout.folds.is_file() else {}
    name, state = root.resolve().name, State(word, step, planned, parts=parts)
    return RunView(
        root,
        name,
        config,
        rows=rows,
        state=state,
        verdict=verdict,
        several=several,
        out_of_fold=out_of_fold,
        manifest=manifest,
    )


def _planned(config: PretrainConfig | FinetuneConfig, rows: Sequence[Row]) -> int | None:
    if isinstance(config, PretrainConfig):
        return config.training.steps
    epochs = [row for row in rows if row.get("epoch")]
    if not epochs:
        return None
    steps_per_epoch = max(1, round(epochs[-1]["step"] / epochs[-1]["epoch"]))
    return max(1, round(config.training.epochs * steps_per_epoch))
