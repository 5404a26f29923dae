"""The trials of a search for a better config: what may change, who proposes it, and which runs are pruned.

Optuna (Akiba et al. 2019) proposes values and keeps all that was decided or measured in a journal, one line
for each fact, which a kill cannot tear apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bertcli.advice.bench.plan import Plan
from bertcli.config.finetune import FinetuneConfig
from bertcli.corpus.streams import import_extra
from bertcli.folders.task_folder import folder_task
from bertcli.model.task_models import VectorModel, may_choose_pooling
from bertcli.reports.tuning import Trial
from bertcli.tasks.registry import import_task
from bertcli.training.best import goodness

RATE, EPOCHS, ROWS = "training.learning_rate", "training.epochs", "training.batch_size"
POOLING = "task.pooling"
FIRST: Sequence[tuple[str, Callable[[Any], Any]]] = (
    (POOLING, lambda given: "mean"),
    (EPOCHS, lambda given: 2 * given),
    (ROWS, lambda given: max(1, given // 2)),
)
"""What each of the first trials after that of the given config changes in the best one so far: a key, and its
value by the given one. Most models of sentence vectors were trained for means. Small models and few rows gain
by more steps (Mosbach et al. 2021); those of smaller batches take no more time."""
MINUTES, TRIALS = 60.0, 30
"""The limits of a search that is given none."""
RANDOM = 6
"""The number of trials before the sampler (TPE: Bergstra et al. 2011) learns from them."""
COMPLETE, WARM_UP = 3, 3
"""Complete trials before one may be pruned, and the tenths of its run before that."""

RESERVED = ((3, 3, 0.4), (2, 1, 0.6))
"""Runs with fresh seeds for which time is reserved, of the best config and of the given one, and the largest
share of all time that they may take. The first trial is one more run of the given config. The last ones are
the fewest by which two configs can be compared."""
MARGIN = 1.1
"""Factor of an expected time."""

Space = Mapping[str, tuple[Any, Any]]
"""Key of the config -> its value in the given config, with `auto` decided, and Optuna's distribution."""


def search_space(optuna: Any, config: FinetuneConfig, plan: Plan) -> Space:
    """The keys that are searched; `plan` is that of the given config."""
    real, whole, choice = (
        getattr(optuna.distributions, f"{kind}Distribution") for kind in ("Float", "Int", "Categorical")
    )
    training, task, most = config.training, config.task, plan.architecture.layers // 2
    rate, epochs, rows = plan.training.learning_rate, training.epochs, training.batch_size
    decay, frozen = training.layer_decay or 1.0, training.freeze_layers
    space = {
        RATE: (rate, real(0.3 * rate, 3 * rate, log=True)),
        EPOCHS: (epochs, real(epochs / 2, 3 * epochs, log=True)),
        ROWS: (rows, choice(sorted({max(1, rows // 2), rows, 2 * rows}))),
    }
    if plan.architecture.layer_groups is None:
        space["training.layer_decay"] = decay, real(min(0.7, decay), 1.0)
        space["training.freeze_layers"] = frozen, whole(0, max(frozen, most))
    model = plan.build()
    if "pooling" in import_task(task.type).keys:
        if isinstance(model, VectorModel):
            space[POOLING] = model.mode, choice(["mean", "cls", "max"])
        elif may_choose_pooling(model) and folder_task(Path(config.model)) is None:
            given = task.pooling or ("mean" if task.few_shot else plan.architecture.pooling)
            space[POOLING] = given, choice(["cls", "mean"])
    if plan.length >= task.max_length:  # a row is full: its text goes on, or is read in windows
        sizes = {task.max_length // 2, task.max_length, 2 * task.max_length}
        fitting = [size for size in sizes if 16 <= size <= plan.architecture.usable_positions]
        space["task.max_length"] = task.max_length, choice(sorted({task.max_length, *fitting}))
    return space


def rounded(key: str, value: Any) -> Any:
    """The value of a key in a config; a sampled number has more digits than mean anything."""
    if not isinstance(value, float):
        return value
    if key == EPOCHS and value >= 2:
        return float(round(value))
    return float(f"{value:.2g}") if key in (RATE, EPOCHS) else round(value, 2)


def tenths(planned: int, steps: Sequence[int], scores: Sequence[float]) -> dict[int, float]:
    """Tenth of a run -> the best score up to there, by which runs of other lengths can be compared.

    The first evaluation that reaches a tenth decides its score, so that later ones change none of them.

    Args:
        planned: steps of the whole run.
        steps, scores: the evaluations so far.
    """
    best: dict[int, float] = {}
    for number, step in enumerate(steps):
        reached = -(-10 * step // planned)
        for tenth in range(max(best, default=reached) + 1, reached):
            best[tenth] = max(scores[:number])
        best.setdefault(reached, max(scores[: number + 1]))
    return best


class Study:
    """The trials so far, in Optuna's journal. One process at a time uses it: the folder is locked.

    A trial is Optuna's, with these attributes of ours: `begun`, the seconds that the search had taken before;
    `seconds` and `epochs`, which its run took; `diverged`, whether its loss ended as no number.
    """

    def __init__(self, optuna: Any, journal: Path, space: Space, seed: int):
        """Open or create the journal; a line that the system's end has cut is removed."""
        self.space, self._optuna, self._seed = space, optuna, seed
        first = ((key, change(space[key][0])) for key, change in FIRST if key in space)
        self._first = [(key, value) for key, value in first if value != space[key][0]]
        self._states = optuna.trial.TrialState
        if journal.exists():
            with open(journal, "rb+") as file:
                file.truncate(file.read().rfind(b"\n") + 1)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        files = import_extra("optuna.storages.journal", "tune", "the search has a journal", doing="it")
        free = SimpleNamespace(acquire=lambda: True, release=lambda: None)
        backend = files.JournalFileBackend(str(journal), lock_obj=free)
        self._study = optuna.create_study(
            study_name="tune",
            storage=optuna.storages.JournalStorage(backend),
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=COMPLETE, n_warmup_steps=WARM_UP),
            load_if_exists=True,
        )
        self.note = self._study.set_user_attr

    @property
    def facts(self) -> dict[str, Any]:
        """What was noted of the whole search: name -> value."""
        return self._study.user_attrs

    def limits(self, minutes: float | None, trials: int | None) -> tuple[float, int]:
        """The seconds and the number of trials of the search. None: as before, or the usual ones."""
        before = {"minutes": MINUTES, "trials": TRIALS} | self.facts
        limits = {"minutes": minutes or before["minutes"], "trials": trials or before["trials"]}
        for name, value in limits.items():
            self.note(name, value)
        return 60 * limits["minutes"], limits["trials"]

    @property
    def scores(self) -> dict[str, float]:
        """Name of a run with a fresh seed -> its goodness."""
        return self.facts.get("scores", {})

    @property
    def trials(self) -> list[Any]:
        """The trials with a score, and pruned ones; the first is that of the given config."""
        states = self._states.COMPLETE, self._states.PRUNED
        return self._study.get_trials(deepcopy=False, states=states)

    @property
    def best(self) -> Any:
        """The trial with the best score, the first of equal ones; None before the first trial ended."""
        complete = [trial for trial in self.trials if trial.state == self._states.COMPLETE]
        return max(complete, key=lambda trial: (trial.value, -trial.number), default=None)

    @property
    def unfinished(self) -> Any:
        """The trial that a kill ended; None if there is none."""
        running = self._study.get_trials(deepcopy=False, states=[self._states.RUNNING])
        return self._optuna.trial.Trial(self._study, running[0]._trial_id) if running else None

    def fitting_epochs(self, left: float, total: float) -> float:
        """The most epochs of a trial that ends in time; 0: none does. The first trial is always taken.

        `left`, `total`: seconds of the search, which also takes the runs with fresh seeds.
        """
        told, low, high = self.trials, self.space[EPOCHS][1].low, self.space[EPOCHS][1].high
        if not told:
            return high
        given, best = (MARGIN * trial.user_attrs["seconds"] for trial in (told[0], self.best))
        pace = MARGIN * max(each.user_attrs["seconds"] / each.user_attrs["epochs"] for each in told)
        times = [(more * best + fewer * given, share) for more, fewer, share in RESERVED]
        reserved = next((time for time, share in times if time <= share * total), 0.0)
        fitting = min(high, (left - reserved) / pace)
        if reserved:  # a trial that becomes the best one is to be run with fresh seeds too
            more, fewer, share = RESERVED[-1]
            first = (left - fewer * given) / ((1 + more) * pace)
            fitting = min(fitting, first, (share * total - fewer * given) / (more * pace))
        return fitting if fitting >= low else 0.0

    def ask(self, epochs: float) -> Any:
        """A new trial of at most so many epochs: the given config, one of `FIRST`, or a sampled one."""
        place, waiting = len(self.trials), self._study.get_trials(states=[self._states.WAITING])
        if place <= len(self._first) and not waiting:
            given = {key: value for key, (value, _) in self.space.items()}
            values = self.best.params | dict([self._first[place - 1]]) if place else given
            values[EPOCHS] = min(epochs, values[EPOCHS])
            if all(self._changes(values) != self.changed(trial) for trial in self.trials):
                self._study.enqueue_trial(values)
        return self._study.ask()

    def fill(self, trial: Any, epochs: float) -> None:
        """Choose the values that a trial does not have yet; the same trials before it give the same ones."""
        self._study.sampler = self._optuna.samplers.TPESampler(
            multivariate=True,
            n_startup_trials=RANDOM,
            seed=(self._seed * 1_000_003 + trial.number) % 2**32,
        )
        for key, (_, values) in self.space.items():
            if hasattr(values, "choices"):
                trial.suggest_categorical(key, values.choices)
            elif isinstance(values.low, int):
                trial.suggest_int(key, values.low, values.high)
            else:
                high = max(values.low, epochs) if key == EPOCHS else values.high
                trial.suggest_float(key, values.low, high, log=values.log)

    def changed(self, trial: Any) -> dict[str, Any]:
        """Key -> value, of the keys in which a trial differs from the given config."""
        return self._changes(trial.params)

    def _changes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        given = {key: value for key, (value, _) in self.space.items()}
        own = {key: rounded(key, value) for key, value in values.items() if value != given[key]}
        return {key: value for key, value in own.items() if value != given[key]}

    def is_hopeless(self, trial: Any, scores: Mapping[int, float]) -> bool:
        """Report the scores (`tenths`) that Optuna lacks; return whether they are reason to prune a trial."""
        known = self._study.trials[trial.number].intermediate_values
        for tenth in scores.keys() - known.keys():
            trial.report(scores[tenth], tenth)
        # A resume evaluates again what was reported already: only what it has seen itself may decide.
        seen = self._optuna.trial.create_trial(state=self._states.RUNNING, intermediate_values=dict(scores))
        return self._study.pruner.prune(self._study, seen)

    def tell(self, trial: Any, score: float | None) -> None:
        """End a trial. None: it was pruned, or diverged."""
        self._study.tell(trial, score, self._states.PRUNED if score is None else None)

    def shown(self, trial: Any, metric: str, fresh: Sequence[float]) -> Trial:
        """A trial for the report. `fresh`: goodness of its runs with fresh seeds."""
        return Trial(
            trial.number,
            None if trial.value is None or trial.user_attrs["diverged"] else goodness(metric, trial.value),
            is_pruned=trial.state == self._states.PRUNED,
            values={key: rounded(key, value) for key, value in trial.params.items()},
            changed=self.changed(trial),
            seconds=trial.user_attrs["seconds"],
            fresh=[goodness(metric, score) for score in fresh],
        )
