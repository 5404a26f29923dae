"""What the life of every run has in common: its folder is claimed, its data accepted, its steps are taken.

`pretraining.pretrain` and `finetuning.finetune` tell the whole of it, each for its kind of run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import with_decisions_of
from bertcli.config.schema import PretrainConfig
from bertcli.folders.run_layout import KeptVerdict, checkpoint_model, write_verdict
from bertcli.folders.sealed import write_folder
from bertcli.system.files import disk_errors
from bertcli.system.signals import said_on_ctrl_c
from bertcli.system.terminal import say
from bertcli.training import ranks, wrapping
from bertcli.training.checkpoint import (
    CheckpointWriter,
    RunState,
    SaveModel,
    load_moments_and_counters,
    newest_checkpoint,
)
from bertcli.training.closing import resume_command, spare_finished, stopped_at_once
from bertcli.training.fit import Decided, Fit, Prepared
from bertcli.training.identity import read_run_data, write_run_data
from bertcli.training.loop import train
from bertcli.training.metrics_log import MetricsLog, cut_back, has_evaluation
from bertcli.training.optimizer import build_optimizer
from bertcli.training.progress import Progress
from bertcli.training.run_folder import Input, RunFolder, check_resumable
from bertcli.training.scores import Scores

NOT_BEGUN = "stopped before the first step: there is nothing to resume; the same command starts again"
Asked = TypeVar("Asked", PretrainConfig, FinetuneConfig)
Identity = dict[str, Any]
"""What a run reads, as JSON (`training.identity`)."""


class Run(Generic[Asked]):
    """A run that holds its folder.

    Attributes:
        verb: the name of the command, also shown in the progress bar.
        asked: the config as it was given; on a resume, with the decisions of the saved run.
        resume: true if `--resume` was given.
        resume_command: the command that resumes the run.
        saved: the decided config of the run that goes on; None: no run was accepted here before.
    """

    def __init__(self, verb: str, asked: Asked, resume: bool, given: Path):
        """`given`: the folder that the command names, which may hold the runs of several seeds."""
        self.verb, self.asked, self.resume = verb, asked, resume
        self.resume_command = resume_command(verb, given)
        self.folder = RunFolder(Path(asked.output_dir), type(asked))
        self.saved: Asked | None = None
        self._has_begun = False

    def lost(self) -> str:
        """The line that says what is lost, and how to go on, if the run ends at once."""
        return stopped_at_once(self.folder, self.resume_command) if self._has_begun else NOT_BEGUN

    def read_saved(self) -> None:
        """Read the saved run that a resume goes on from, if there is one, and take its decisions."""
        self.saved = ranks.on_first(self.folder.saved_config) if self.resume else None
        if self.saved is not None:
            self.asked, self._has_begun = with_decisions_of(self.asked, self.saved), True

    def compare(self, config: Decided, identity: Identity, check: Callable[[Identity], None]) -> None:
        """Raise `UserError` if a resume has another config, or other data, than the run had at its start.

        Args:
            identity: all data that the run reads (`training.identity`).
            check: a function that raises the error if its argument, the identity at the start, differs.
        """

        def compare() -> None:
            if self.saved is None:
                return
            check_resumable(self.saved, config, say)
            before = read_run_data(self.folder.data, {key: type(value) for key, value in identity.items()})
            if before is not None:
                check(before)

        ranks.on_first(compare)

    def accept(self, config: Decided, identity: Identity) -> None:
        """Write the config and the identity of the data; from now on there is something to resume."""

        def accept() -> None:
            self._has_begun = True
            self.folder.accept(config)
            write_run_data(self.folder.data, identity)

        ranks.on_first(accept)

    def publish(self, folder: Path, save_model: SaveModel, weights: Mapping[str, Tensor]) -> None:
        """Write a model folder atomically, on the first rank only; an old one stays until the end.

        Raises `UserError` if the disk is full or not writable, or the run was moved.
        """

        def publish() -> None:
            with self.folder.stays(), disk_errors(f"{folder}: the model could not be written"):
                write_folder(folder, lambda path: save_model(path, weights))

        ranks.on_first(publish)

    def keep_verdict(self, verdict: KeptVerdict) -> None:
        """Write the verdict of the run, on the first rank only, after the model is saved.

        Raises `UserError` if the disk is full or not writable.
        """
        ranks.on_first(lambda: write_verdict(self.folder.verdict, verdict))


@contextmanager
def claimed(run: Run[Asked], inputs: Callable[[], Iterable[Input]], overwrite: bool) -> Iterator[None]:
    """A context in which the run holds its folder and has read the saved run there. Every rank enters it.

    Args:
        inputs: a function that gives all files that the run reads, which `overwrite` must not remove.

    Raises:
        UserError: bad input, a folder in use, a full disk, a run that diverged. Saved files stay intact.
        SystemExit: after a signal to stop; a checkpoint is saved.
    """
    with said_on_ctrl_c(run.lost), ranks.first_holds(run.folder.claim(run.resume, overwrite, inputs)):
        run.read_saved()
        yield


def take_steps(run: Run[Any], prepared: Prepared) -> Scores | None:
    """Train from the first step, or from the newest checkpoint, to the last step; on every rank.

    Returns the last evaluation; None if there was none, or if the run had ended before.
    """
    model, optimizer, state = _load(run, prepared)
    every = max(each.logging.every_steps for each in (prepared.config, run.saved) if each is not None)
    rows = ranks.on_first(lambda: cut_back(run.folder.metrics, state.step, every, report=say))
    if prepared.best is not None:
        prepared.best.read(rows)
    if state.step >= prepared.steps and (not prepared.is_evaluated or has_evaluation(rows, state.step)):
        say(f"{run.folder.root} is finished: {state.step} of {prepared.steps} steps")
        return None
    if prepared.best is not None and prepared.best.is_settled:
        say(f"{run.folder.root} is finished: stopped early at step {state.step} of {prepared.steps}")
        return None
    for line in prepared.lines():
        say(line)
    fit = _fit(run, prepared, optimizer, state=state)
    reports = train(
        model=model,
        task=prepared.task,
        steps=prepared.micro_batches(state.step),
        optimizer=optimizer,
        settings=prepared.loop,
        first_step=state.step,
        loss_scale=state.loss_scale,
    )
    try:
        return fit.run(reports, state, rows)[1]
    finally:
        fit.checkpoints.wait()  # also after an error: another run may use the folder afterwards
        fit.progress.close()
        fit.log.close()


def _load(run: Run[Any], prepared: Prepared) -> tuple[nn.Module, torch.optim.Optimizer, RunState]:
    """The wrapped model, its optimizer and the counters, loaded from a checkpoint if there is one."""
    training = prepared.config.training
    checkpoint = ranks.on_first(lambda: _last_good(run, prepared)) if run.resume else None
    if checkpoint is not None:
        prepared.model.load_state_dict(prepared.read_weights(checkpoint_model(checkpoint)))
    if training.compile:
        wrapping.compile_layers(prepared.model)
    model = wrapping.distribute(prepared.model, training.parallel)
    optimizer = build_optimizer(
        prepared.model, training.betas, training.weight_decay, rate_scale=prepared.rate_scale
    )
    if checkpoint is not None:
        state = load_moments_and_counters(checkpoint, prepared.model, optimizer, report=say)
        return model, optimizer, replace(state, planned=prepared.steps)
    if run.resume:
        say(f"{run.folder.checkpoints} holds no checkpoint to resume from: starting from the first step")
    return model, optimizer, RunState(planned=prepared.steps)


def _last_good(run: Run[Any], prepared: Prepared) -> Path | None:
    """The checkpoint to resume from; None: there is none."""
    find = partial(newest_checkpoint, run.folder, say) if prepared.best is None else prepared.best.last_good
    return spare_finished(run.folder, find(prepared.is_usable))


def _fit(run: Run[Any], prepared: Prepared, optimizer: torch.optim.Optimizer, state: RunState) -> Fit:
    config = prepared.config
    return Fit(
        prepared,
        checkpoints=CheckpointWriter(
            layout=run.folder,
            model=prepared.model,
            optimizer=optimizer,
            save_model=prepared.save,
            keep_last=config.checkpoint.keep_last,
            keep_step=prepared.branch_step,
        ),
        log=MetricsLog(run.folder, config.logging.tensorboard),
        progress=Progress(
            run.verb, state.step, prepared.steps, log_every=config.logging.every_steps, work=prepared.work
        ),
        lost=run.lost,
        resume_command=run.resume_command,
        reason_to_stop=partial(_keep_best, run, prepared),
    )


def _keep_best(run: Run[Any], prepared: Prepared, scores: Scores, state: RunState) -> str | None:
    """Keep the model if it is the best so far; return the reason to end the run early, or None."""
    if prepared.best is None:
        return None
    prepared.best.consider(
        state.step,
        scores,
        lambda folder: run.publish(folder, prepared.save, wrapping.full_weights(prepared.model)),
    )
    return prepared.best.reason_to_stop(scores) if state.step < prepared.steps else None
