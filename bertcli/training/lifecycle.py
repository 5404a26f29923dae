"""The stages of every run: claim its folder, prepare, start or resume, train, finish."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from bertcli.batches.share import MicroBatch, Share
from bertcli.config.run import DecidedFinetuning, DecidedPretraining, with_decisions_of
from bertcli.folders.run_layout import KeptVerdict, checkpoint_model, write_verdict
from bertcli.folders.sealed import write_folder
from bertcli.objectives.base import Task
from bertcli.reports.pretraining_verdict import Health
from bertcli.system.files import disk_errors
from bertcli.system.signals import said_on_ctrl_c
from bertcli.system.terminal import say
from bertcli.training import ranks, wrapping
from bertcli.training.checkpoint import (
    CheckpointWriter,
    RunState,
    load_moments_and_counters,
    newest_checkpoint,
)
from bertcli.training.closing import resume_command, spare_finished, stopped_at_once
from bertcli.training.evaluate import Scores
from bertcli.training.fit import Fit, FitSettings
from bertcli.training.identity import read_run_data, write_run_data
from bertcli.training.loop import LoopSettings, train
from bertcli.training.metrics_log import MetricsLog, cut_back, has_evaluation
from bertcli.training.optimizer import build_optimizer
from bertcli.training.progress import Progress
from bertcli.training.run_folder import Input, RunFolder, check_resumable

NOT_BEGUN = "stopped before the first step: there is nothing to resume; the same command starts again"
Config = TypeVar("Config", DecidedPretraining, DecidedFinetuning)
Result = TypeVar("Result")


class Run(ABC, Generic[Config, Result]):
    """The stages of one kind of run; `run_stages` goes through them.

    Attributes:
        asked: the config as it was given, on a resume with the decisions of the run.
        config: the config in which everything is decided; `prepare` sets it.
        source: the model folder that the run starts from; None: random weights.
        model, task, loop, share, steps: what is trained, and how; `prepare` sets them.
        steps_per_epoch: steps of an epoch; None: epochs are not counted.
        branch_step: the step whose checkpoint is kept so that a longer run can continue from it, or None.
        health: the reference values of the losses; `prepare` may set them.
        is_resumed: true if a saved run goes on.
    """

    verb: ClassVar[str]
    """The name of the command, also shown in the progress bar."""
    config: Config
    model: Any
    task: Task
    loop: LoopSettings
    share: Share
    steps: int
    steps_per_epoch: int | None = None
    branch_step: int | None = None
    health: Health = Health()
    is_resumed = False

    def __init__(self, asked: Any, source: Path | None):
        self.asked, self.source = asked, source
        self.folder: RunFolder[Any] = RunFolder(Path(asked.output_dir), type(asked))

    @property
    def resume_command(self) -> str:
        """The command that resumes the run (`closing.resume_command`)."""
        return resume_command(self.verb, self.folder.root)

    def stopped_at_once(self) -> str:
        """The line that says what is lost, and how to go on, if the run ends at once."""
        return stopped_at_once(self.folder, self.resume_command)

    @abstractmethod
    def check(self) -> None:
        """Raise `UserError` if a needed input is missing; nothing is written yet."""

    @abstractmethod
    def inputs(self) -> Iterator[Input]:
        """All files that the run reads, which `--overwrite` must not remove; called after `check`."""

    @abstractmethod
    def prepare(self) -> None:
        """Read the data, build the model, decide every `auto` of `asked`; called on every rank."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """The identity of all data that the run reads, as JSON; a resume compares it."""

    @abstractmethod
    def compare(self, before: dict[str, Any]) -> None:
        """Raise `UserError` if `before`, the identity at the start of the run, differs from the one now."""

    def evaluate_once(self) -> None:
        """Evaluate a few examples, to find mistakes before anything is written; called on every rank."""

    def last_good(self) -> Path | None:
        """The checkpoint to resume from; None: there is none."""
        return newest_checkpoint(self.folder, say)

    def rate_scale(self, name: str) -> float:
        """The factor of the learning rate for a parameter."""
        return 1.0

    def work_until(self, step: int) -> float:
        """The work of all steps up to `step`, in any unit."""
        return step

    def read_log(self, rows: list[dict[str, Any]]) -> None:
        """Take the rows of the log up to the first step, before the training starts."""

    def is_settled(self) -> bool:
        """True if an earlier evaluation ended the run."""
        return False

    @abstractmethod
    def describe(self) -> None:
        """Print what is trained, and how."""

    @abstractmethod
    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        """This rank's share of each step, starting at `first_step`."""

    @abstractmethod
    def evaluator(self) -> Callable[[], Scores] | None:
        """A function that computes the held-out scores of the current model; None: nothing is held out."""

    def reason_to_stop(self, scores: Scores, state: RunState) -> str | None:
        """The reason to end the run early after an evaluation at `state`, or None; called on every rank."""
        return None

    @abstractmethod
    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """The weights in a model folder, by their names in the model."""

    @abstractmethod
    def save_model(self, folder: Path, weights: Any, card: str | None = None) -> None:
        """Write a model folder with these weights, file by file."""

    @abstractmethod
    def finish(self, scores: Scores | None) -> Result:
        """Write the final model. `scores`: the last evaluation; None: there was none."""

    def publish(self, folder: Path, weights: dict[str, Tensor], card: str | None = None) -> None:
        """Write a model folder atomically, on the first rank only; an old one stays until the end.

        Raises `UserError` if the disk is full or not writable, or the run was moved.
        """

        def write() -> None:
            with self.folder.stays(), disk_errors(f"{folder}: the model could not be written"):
                write_folder(folder, lambda path: self.save_model(path, weights, card))

        ranks.on_first(write)

    def keep_verdict(self, verdict: KeptVerdict) -> None:
        """Write the verdict of the run, on the first rank only, after the model is saved.

        Raises `UserError` if the disk is full or not writable.
        """
        ranks.on_first(lambda: write_verdict(self.folder.verdict, verdict))


def run_stages(
    run: Run[Config, Result], resume: bool, overwrite: bool, accepted: Callable[[], None] = lambda: None
) -> Result:
    """Go through all stages of a run, on every rank.

    `accepted` is called on the first rank after config, data and model have passed all checks.

    Raises:
        UserError: bad input, a folder in use, a full disk, a run that diverged. Saved files stay intact.
        SystemExit: after a signal to stop; a checkpoint is saved.
    """
    ranks.on_first(run.check)
    has_begun = False
    with (
        said_on_ctrl_c(lambda: run.stopped_at_once() if has_begun else NOT_BEGUN),
        ranks.first_holds(run.folder.claim(resume, overwrite, run.inputs)),
    ):
        saved = ranks.on_first(run.folder.saved_config) if resume else None
        if saved is not None:
            has_begun = True
            run.asked, run.is_resumed = with_decisions_of(run.asked, saved), True
        run.prepare()
        ranks.on_first(lambda: None if saved is None else _check_same(run, saved))
        run.evaluate_once()

        def accept() -> None:
            nonlocal has_begun
            has_begun = True
            run.folder.accept(run.config)
            write_run_data(run.folder.data, run.identity())
            accepted()

        ranks.on_first(accept)
        return run.finish(_train(run, resume, saved))


def _check_same(run: Run[Config, Any], saved: Config) -> None:
    check_resumable(saved, run.config, say)
    now = run.identity()
    before = read_run_data(run.folder.data, {key: type(value) for key, value in now.items()})
    if before is not None:
        run.compare(before)


def _train(run: Run[Config, Any], resume: bool, saved: Config | None) -> Scores | None:
    """Train from the first step or the newest checkpoint to the last step; returns the last evaluation."""
    trained, optimizer, state = _load(run, resume)
    every = max(each.logging.every_steps for each in (run.config, saved) if each is not None)
    rows = ranks.on_first(lambda: cut_back(run.folder.metrics, state.step, every, report=say))
    run.read_log(rows)
    evaluate = run.evaluator()
    if state.step >= run.steps and (evaluate is None or has_evaluation(rows, state.step)):
        say(f"{run.folder.root} is finished: {state.step} of {run.steps} steps")
        return None
    if run.is_settled():
        say(f"{run.folder.root} is finished: stopped early at step {state.step} of {run.steps}")
        return None
    run.describe()
    config, every = run.config, run.config.logging.every_steps
    progress = Progress(run.verb, state.step, run.steps, log_every=every, work=run.work_until)
    log = MetricsLog(run.folder, config.logging.tensorboard)
    fit = Fit(
        settings=_fit_settings(run),
        checkpoints=CheckpointWriter(
            layout=run.folder,
            model=run.model,
            optimizer=optimizer,
            save_model=run.save_model,
            keep_last=config.checkpoint.keep_last,
            keep_step=run.branch_step,
        ),
        log=log,
        progress=progress,
        lost=run.stopped_at_once,
        resume_command=run.resume_command,
        evaluate=evaluate,
        health=run.health,
        reason_to_stop=run.reason_to_stop,
    )
    reports = train(
        model=trained,
        task=run.task,
        steps=run.micro_batches(state.step),
        optimizer=optimizer,
        settings=run.loop,
        first_step=state.step,
        loss_scale=state.loss_scale,
    )
    try:
        return fit.run(reports, state, rows)[1]
    finally:
        fit.checkpoints.wait()  # also after an error: another run may use the folder afterwards
        progress.close()
        log.close()


def _load(run: Run[Config, Any], resume: bool) -> tuple[nn.Module, torch.optim.Optimizer, RunState]:
    """The wrapped model, its optimizer and the counters, loaded from a checkpoint if there is one."""
    training = run.config.training
    checkpoint = ranks.on_first(lambda: spare_finished(run.folder, run.last_good())) if resume else None
    if checkpoint is not None:
        run.model.load_state_dict(run.read_weights(checkpoint_model(checkpoint)))
    if training.compile:
        wrapping.compile_layers(run.model)
    trained = wrapping.distribute(run.model, training.parallel)
    optimizer = build_optimizer(run.model, training.betas, training.weight_decay, rate_scale=run.rate_scale)
    if checkpoint is not None:
        state = load_moments_and_counters(checkpoint, run.model, optimizer, report=say)
        return trained, optimizer, replace(state, planned=run.steps)
    if resume:
        say(f"{run.folder.checkpoints} holds no checkpoint to resume from: starting from the first step")
    return trained, optimizer, RunState(planned=run.steps)


def _fit_settings(run: Run[Config, Any]) -> FitSettings:
    config, epoch = run.config, run.steps_per_epoch
    return FitSettings(
        steps=run.steps,
        log_every=config.logging.every_steps,
        evaluate_every=config.evaluation.every_steps or epoch or run.steps,
        save_every=config.checkpoint.every_steps or epoch or run.steps,
        save_at=run.branch_step,
        max_bad_steps=config.training.max_bad_steps,
        steps_per_epoch=epoch,
    )
