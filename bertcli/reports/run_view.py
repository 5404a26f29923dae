"""The content of a run folder for a report: config, log, verdict, state, and the runs of its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import PretrainRecipe, load_config_of_run
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.manifest import Manifest, read_manifest
from bertcli.corpus.matching import store_folder
from bertcli.folders.run_layout import KeptVerdict, RunLayout, read_verdict
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
        step: the last logged step; for several seeds, the sum of theirs.
        planned: the steps of the whole run; None: the log does not show them yet.
        seeds: the number of finished seeds and of all seeds; None: there is one run.
    """

    word: Literal["finished", "running", "stopped"]
    step: int
    planned: int | None = None
    seeds: tuple[int, int] | None = None

    @property
    def steps(self) -> str:
        """The text on the steps, which follows the word."""
        if not self.step:
            return "before the first logged step"
        of = "" if self.planned is None or self.word == "finished" else f" of {number(self.planned)}"
        seeds = "" if self.seeds is None else f" with {self.seeds[0]} of {self.seeds[1]} seeds"
        return f"after {number(self.step)}{of} steps{seeds}"


@dataclass(frozen=True)
class RunView:
    """The content of one run folder.

    Attributes:
        name: the name of the folder, by which readers tell several runs apart.
        rows: the rows of metrics.jsonl; empty if `seeds` has them.
        verdict: the verdict of the run at its end; None: it has not ended, or goes on.
        seeds: the runs of several seeds, which have their own rows.
        manifest: the manifest of the token store; None: it is gone or damaged, or the task is labeled.
    """

    root: Path
    name: str
    config: PretrainRecipe | FinetuneConfig
    rows: Sequence[Row]
    state: State
    verdict: KeptVerdict | None
    seeds: tuple[RunView, ...] = ()
    manifest: Manifest | None = None

    @property
    def kind(self) -> str:
        """`pretraining`, or the type of the labeled task; runs of one kind can be compared."""
        return "pretraining" if isinstance(self.config, PretrainConfig) else self.config.task.type

    @property
    def parts(self) -> tuple[RunView, ...]:
        """The runs with rows: those of the seeds, or this one."""
        return self.seeds or (self,)

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
    config = load_config_of_run(layout.config)
    given = config.seeds if isinstance(config, FinetuneConfig) else None
    folders = [] if given is None or layout.is_of_seed else [layout.seed(seed) for seed in given]
    seeds = tuple(read_run(folder) for folder in folders if RunLayout(folder).config.is_file())
    rows = read_metrics(layout.metrics)
    verdict = read_verdict(layout.verdict)
    if verdict is not None and rows and verdict.step < rows[-1]["step"]:
        verdict = None  # it is the verdict of a shorter run, which then went on
    if folders:
        done = sum(seed.state.word == "finished" for seed in seeds)
        step, planned, of_seeds = sum(seed.state.step for seed in seeds), None, (done, len(folders))
        has_ended = done == len(folders)
    else:
        step, planned = rows[-1]["step"] if rows else 0, _planned(config, rows)
        is_last = planned is not None and step >= planned and layout.model.is_dir()
        of_seeds, has_ended = None, verdict is not None or is_last
    ended: Literal["finished", "stopped"] = "finished" if has_ended else "stopped"
    word = "running" if is_locked(layout.lock) else ended
    manifest = None
    if isinstance(config, PretrainConfig):
        with suppress(UserError, OSError):
            manifest = read_manifest(store_folder(config))
    name, state = root.resolve().name, State(word, step, planned, seeds=of_seeds)
    return RunView(
        root, name, config, rows=rows, state=state, verdict=verdict, seeds=seeds, manifest=manifest
    )


def _planned(config: PretrainConfig | FinetuneConfig, rows: Sequence[Row]) -> int | None:
    if isinstance(config, PretrainConfig):
        return config.training.steps
    epochs = [row for row in rows if row.get("epoch")]
    if not epochs:
        return None
    steps_per_epoch = max(1, round(epochs[-1]["step"] / epochs[-1]["epoch"]))
    return max(1, round(config.training.epochs * steps_per_epoch))
