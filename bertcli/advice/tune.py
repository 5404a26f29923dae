"""A search for a better fine-tuning config: trials, which are ordinary runs, then a comparison over seeds.

A killed search goes on. The journal (`advice.study`) gets each fact before the next step is taken: a trial
exists before its values, its values before its run, and its score after the run. So a trial without a score
keeps its values, and its run continues at its last checkpoint. A run that had ended reads its score from its
own log again, and the score is told for the first time. A trial with a score is never run again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

from bertcli.advice.bench.plan import plan_finetuning
from bertcli.advice.study import MARGIN, Study, rounded, search_space, tenths
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, find_config, load_config
from bertcli.config.run import with_values
from bertcli.config.section import differences
from bertcli.corpus.streams import import_extra
from bertcli.folders.locate import resolve_model
from bertcli.folders.mark import read_note, write_note, write_own
from bertcli.folders.run_layout import RunLayout
from bertcli.reports.cards import public_name
from bertcli.reports.tuning import Tuning
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors
from bertcli.system.signals import Stopped, said_on_ctrl_c
from bertcli.system.terminal import number, say
from bertcli.training import identity, ranks
from bertcli.training.best import goodness, heldout_rows
from bertcli.training.commands import resume_command
from bertcli.training.finetuning import Finetuned, finetune
from bertcli.training.fit import DivergedError
from bertcli.training.lifecycle import NOT_BEGUN
from bertcli.training.resolve import check_finetuning
from bertcli.training.run_folder import RunFolder, remove_checkpoints, remove_model
from bertcli.training.train import alone

SEEDS = 3
"""Fresh seeds by which the best config is compared with the given one."""


@alone()
def tune(
    given: Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    minutes: float | None = None,
    trials: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Search for so many minutes; call it inside `ranks.joined`. The result is `Tuning.as_json` with paths.

    All files are in `output_dir` with `-tune` at its end. `given`: a config; or that folder, to resume.
    `minutes`, `trials`: the limits; None: those of the resumed search, or 60 and 30.

    Raises:
        UserError: as `finetune`; there is no dev data; Optuna is missing.
        SystemExit: after a signal to stop.
    """
    optuna = import_extra("optuna", "tune", "bertcli tune searches with Optuna", doing="the search")
    resume, overwrite = ranks.after_restart(resume, overwrite)
    asked = ranks.on_first(lambda: _asked(given, overrides))
    source = ranks.first_then_all(lambda: resolve_model(asked.model))
    search = Search(asked, with_values(asked, {"model": str(source)}), (minutes, trials))
    with said_on_ctrl_c(search.stopped), search.claimed(optuna, resume, overwrite):
        try:
            while (run := ranks.on_first(search.next_run)) is not None:
                search.take(run)
        except (SystemExit, Stopped):  # the run's own line, which names the run, is in its log
            say(search.stopped())
            raise
        return ranks.on_first(search.finish)


def _asked(given: Path | Mapping[str, Any], overrides: Sequence[str]) -> FinetuneConfig:
    if isinstance(given, Path):
        if find_config(given).is_dir() and not RunLayout(given).trials.is_file():
            own = given / "config.yaml"
            raise UserError(f"{given}: is a run, and not a search; give its config: bertcli tune {own}")
        config = load_config(FinetuneConfig, given, list(overrides))
    else:
        config = check_config(FinetuneConfig, dict(given), "the config")
    if not config.task.has_dev:  # what trials are compared by; `_tell` reads the scores
        raise UserError("bertcli tune compares trials by dev data: give task.dev or task.dev_fraction")
    if isinstance(given, Path) and find_config(given).is_dir():
        return config
    return with_values(config, {"output_dir": f"{config.output_dir.rstrip('/')}-tune"})


@dataclass(frozen=True)
class PlannedRun:
    """A run to take, or to continue.

    Attributes:
        trial: the number of its trial.
        seed: the seed of a run for the comparison; None: the run of the trial itself.
        line: what is said of it.
    """

    trial: int
    config: FinetuneConfig
    line: str
    seed: int | None = None


def _name(trial: int, seed: int | None = None) -> str:
    return f"trial-{trial:03d}" + ("" if seed is None else f"-seed-{seed}")


class Search:
    """A search. The first rank decides and writes; all ranks `take` the runs."""

    def __init__(self, asked: FinetuneConfig, config: FinetuneConfig, limits: tuple[Any, Any]):
        """Nothing is read yet. In `config` the model of `asked` is located. `limits`: as `Study` has them."""
        self._begun, self._asked, self._config, self._limits = monotonic(), asked, config, limits
        self.folder = RunFolder(Path(config.output_dir), FinetuneConfig)
        self._fresh = [(config.training_seed + number) % 2**63 for number in range(1, SEEDS + 1)]

    def stopped(self) -> str:
        """The line that says how to go on after a stop."""
        command = resume_command("tune", self.folder.root)
        return f"stopped; to go on: {command}" if self.folder.is_taken else NOT_BEGUN

    @contextmanager
    def claimed(self, optuna: Any, resume: bool, overwrite: bool) -> Iterator[None]:
        """A context that holds the folder. Raises `UserError` as a run, also if config or data changed."""
        ranks.on_first(lambda: check_finetuning(self._config))
        claim = self.folder.claim(resume, overwrite, lambda: identity.finetuning_inputs(self._config))
        with ranks.first_holds(claim):
            ranks.on_first(lambda: self._open(optuna, resume))
            yield

    def _open(self, optuna: Any, resume: bool) -> None:
        data = identity.task_identity(self._config, ())
        if resume and (saved := self.folder.saved_config()) is not None:
            if changed := [key for key in differences(saved, self._asked) if key != "output_dir"]:
                raise UserError(
                    f"cannot resume: {', '.join(changed)} changed since the start of the search "
                    f"({self.folder.config}); restore that, or begin anew: --overwrite or another output_dir"
                )
            types = {key: type(value) for key, value in data.items()}
            if before := identity.read_run_data(self.folder.data, types):
                identity.check_same_data(before, data, self.folder.data)
        space = search_space(optuna, self._config, plan_finetuning(self._config))
        self.folder.accept(self._asked)
        identity.write_run_data(self.folder.data, data)
        with disk_errors(f"{self.folder.root}: could not be written"):
            note = read_note(self.folder.root, "run")
            assert note is not None
            note.files |= {path.name: [] for path in (self.folder.trials, self.folder.runs_log)}
            write_note(self.folder.root, note)
            self._study = Study(optuna, self.folder.trials, space, seed=self._config.seed)
        self._before = self._study.facts.get("seconds", 0.0)
        self._seconds, self._most = self._study.limits(*self._limits)

    def _used(self) -> float:
        """Seconds that the search has taken, without the time between a kill and the resume."""
        return self._before + monotonic() - self._begun

    def next_run(self) -> PlannedRun | None:
        """A run that a kill ended, else a trial that ends in time, else a run with a fresh seed that does."""
        study = self._study
        study.note("seconds", self._used())
        with disk_errors(f"{self.folder.root}: weights could not be removed"):
            self._remove_weights()
        epochs = study.fitting_epochs(self._seconds - self._used(), total=self._seconds)
        if (trial := study.unfinished) is not None:
            return self._of_trial(trial, epochs)
        if (run := self._next_seed(is_begun=True)) is not None:
            return run
        if epochs and len(study.trials) < self._most:
            return self._of_trial(study.ask(epochs), epochs)
        return self._next_seed(is_begun=False)

    def _of_trial(self, trial: Any, epochs: float) -> PlannedRun:
        self._study.fill(trial, epochs)
        if "begun" not in trial.user_attrs:
            trial.set_user_attr("begun", self._used())
        self._trial, changed = trial, self._study.changed(trial)
        values = ", ".join(f"{key.partition('.')[2]} {value}" for key, value in changed.items())
        return self._planned(trial, None, f"trial {trial.number}: {values or 'the given config'}")

    def _planned(self, trial: Any, seed: int | None, line: str) -> PlannedRun:
        seeds = self._config.seeds and self._config.seeds[:1] if seed is None else [seed]
        output_dir = str(self.folder.root / _name(trial.number, seed))
        sections: dict[str, Any] = {"output_dir": output_dir, "seeds": seeds}
        for key, value in self._study.changed(trial).items():
            section, _, inner = key.partition(".")
            sections.setdefault(section, {})[inner] = value
        return PlannedRun(trial.number, with_values(self._config, sections), line, seed=seed)

    def _next_seed(self, is_begun: bool) -> PlannedRun | None:
        """The next run for the comparison of best and given config; `is_begun`: only if a kill ended it."""
        best = self._study.best
        if best is None or best.number == 0:
            return None
        both = product(self._fresh, (best, self._study.trials[0]))
        left = (each for each in both if _name(each[1].number, each[0]) not in self._study.scores)
        if (following := next(left, None)) is None:
            return None
        seed, trial = following
        run = self._planned(trial, seed, f"trial {trial.number} with seed {seed}")
        fits = self._used() + MARGIN * trial.user_attrs["seconds"] <= self._seconds
        return run if (self._is_taken(run) if is_begun else fits) else None

    def _is_taken(self, run: PlannedRun) -> bool:
        return RunFolder(Path(run.config.output_dir), FinetuneConfig).is_taken

    def take(self, run: PlannedRun) -> None:
        """Take or continue a run, and tell its score; on every rank. Raises as `finetune`."""
        if ranks.is_first():
            say(f"{run.line} ({self._used() / 60:.1f} of {self._seconds / 60:g} min)")
        goes_on = ranks.from_first(self._is_taken(run))
        done: Finetuned | None = None
        self._is_pruned = False
        try:
            with self._logged():
                done = finetune(run.config, goes_on, False, is_hopeless=partial(self._is_hopeless, run))
        except DivergedError:
            if run.trial == 0:
                raise
        ranks.on_first(lambda: self._tell(run, done))

    @contextmanager
    def _logged(self) -> Iterator[None]:
        """A context in which what a run prints goes to a file; the first rank alone prints."""
        path = self.folder.runs_log if ranks.is_first() else os.devnull
        with open(path, "a", encoding="utf-8") as log, redirect_stderr(log):
            yield

    def _is_hopeless(
        self, run: PlannedRun, planned: int, steps: Sequence[int], scores: Sequence[float]
    ) -> bool:
        """Whether the run of a trial is pruned after these evaluations (`training.best.IsHopeless`)."""

        def decide() -> bool:
            self._study.note("seconds", self._used())
            self._is_pruned = self._study.is_hopeless(self._trial, tenths(planned, steps, scores))
            return self._is_pruned

        return run.seed is None and ranks.on_first(decide)

    def _tell(self, run: PlannedRun, done: Finetuned | None) -> None:
        """Write the score of a run that has ended; None: it diverged."""
        rows = heldout_rows(RunLayout(Path(run.config.output_dir)).metrics)
        if done is not None and done.scores is not None:
            self._study.note("metric", [done.metric, done.scores.title(done.metric)])
        metric = self._study.facts["metric"][0]
        score = max((goodness(metric, row.get(metric)) for row in rows), default=-math.inf)
        if run.seed is not None:
            score = -math.inf if done is None else score
            self._study.note("scores", self._study.scores | {_name(run.trial, run.seed): score})
        else:
            self._trial.set_user_attr("seconds", self._used() - self._trial.user_attrs["begun"])
            self._trial.set_user_attr("diverged", done is None)
            self._trial.set_user_attr("epochs", rows[-1]["epoch"] if rows else run.config.training.epochs)
            self._study.tell(self._trial, None if self._is_pruned or done is None else score)
        title, best = self._study.facts["metric"][1], self._study.best
        end = "diverged, " if done is None else "pruned, " if self._is_pruned else ""
        shown = (number(goodness(metric, value)) for value in (score, best.value))
        say(f"  {end}{title} {next(shown)}; best: trial {best.number}, {next(shown)}")

    def _remove_weights(self) -> None:
        """Remove the checkpoints of all runs that have ended, and the models of all but the best trial."""
        for name in [*(_name(trial.number) for trial in self._study.trials), *self._study.scores]:
            layout = RunLayout(self.folder.root / name)
            remove_checkpoints(layout)
            if name != _name(self._study.best.number):
                remove_model(layout)

    def finish(self) -> dict[str, Any]:
        """Write `best.yaml` and the page. Raises `UserError` for files that are not bertcli's."""
        folder, study = self.folder, self._study
        metric, title = study.facts["metric"]
        trials = []
        for trial in study.trials:
            names = (_name(trial.number, seed) for seed in self._fresh)
            fresh = [study.scores[name] for name in names if name in study.scores]
            trials.append(study.shown(trial, metric, fresh))
        given = {key: rounded(key, value) for key, (value, _) in study.space.items()}
        tuning = Tuning(metric, title, trials, best=study.best.number, given=given, seconds=self._used())
        own = with_values(self._asked, {"output_dir": str(folder.root / "best")})
        with disk_errors(f"{folder.root}: the result could not be written"):
            write_own(folder.best_config, tuning.config_text(own))
            write_own(folder.report, tuning.page(public_name(str(folder.root))))
        say(tuning.verdict)
        say(f"the config is in {folder.best_config}, the page in {folder.report}")
        model = folder.root / _name(study.best.number) / "model"
        paths = {"config": folder.best_config, "report": folder.report, "model": model}
        return {name: str(path) for name, path in paths.items()} | tuning.as_json()
