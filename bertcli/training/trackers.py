"""The trackers that can follow a run: how each takes its config, its rows and its end.

A tracker works in a process of its own (`bertcli.training.followers`), so it may be slow, print, or fail.
"""

import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from bertcli.config.schema import TrackerName
from bertcli.system.terminal import short

PROJECT = "bertcli"
"""The project or experiment of an entry, unless the environment names another one."""
End = Literal["finished", "stopped", "failed"]
Row = Mapping[str, Any]
"""A row of `metrics.jsonl`."""
_SPLITS = {"train": "train", "heldout": "eval"}
_BY_MLFLOW = re.compile(r"[^\w\-. /:]")  # what it does not take in a name
_OF_THE_RUN = ("epoch", "tokens", "seconds")
"""Keys that the rows of both splits have; a tracker gets them once a step, under `train/`."""


def metrics_of(row: Row) -> dict[str, float]:
    """The numbers of a row, named as by `transformers.Trainer`: `train/loss`, `train/epoch`, `eval/loss`."""
    split = _SPLITS[row["split"]]
    left_out = ("step", *(_OF_THE_RUN if split == "eval" else ()))
    return {
        f"{split}/{name}": value
        for name, value in row.items()
        if isinstance(value, int | float) and name not in left_out
    }


@dataclass(frozen=True)
class Entry:
    """What a tracker shows of a run.

    Attributes:
        folder: the folder in which the tracker writes.
        id: random letters and digits, which a resume keeps.
        name: the name of the run for people.
        config: the decided config, key by key: `training.steps`.
        config_text: the same as YAML.
        began: the time at which the run began, in seconds since 1970; that of a row, where a tracker takes
            it, is so many seconds of training later, so a resume gives it the same time.
    """

    folder: Path
    id: str
    name: str
    config: Mapping[str, Any]
    config_text: str
    began: float


class Tracker(ABC):
    """One entry in a tracker. Each method may raise any error, which ends this tracker alone.

    Attributes:
        modules: the modules that it imports.
        starts_anew: true if the files of an entry are removed before `open`, and all rows are logged again.
            Else `log` skips the rows that the entry has.
    """

    modules: ClassVar[Sequence[str]]
    starts_anew: ClassVar[bool] = True

    @staticmethod
    @abstractmethod
    def files(id: str) -> Sequence[str]:
        """Patterns of the names of what it writes for the entry `id`; folders after what they hold."""

    @abstractmethod
    def open(self, entry: Entry) -> None:
        """Create the entry, or continue it."""

    @abstractmethod
    def log(self, rows: Sequence[Row]) -> None:
        """Add rows, which come in the order of their steps."""

    @abstractmethod
    def close(self, end: End, verdict: Sequence[str], card: str | None) -> None:
        """Complete the entry. `verdict`: the last lines of the run; `card`: the model card in Markdown."""


class TensorBoard(Tracker):
    """Event files."""

    modules = ("tensorboard", "torch.utils.tensorboard")

    @staticmethod
    def files(id: str) -> Sequence[str]:
        """One file for each process; a resume leaves one."""
        return (f"events.out.tfevents.*.{id}",)

    def open(self, entry: Entry) -> None:
        """Write the config as a text. A TensorBoard that is open now forgets what it has read of the run."""
        writer = import_module("torch.utils.tensorboard").SummaryWriter
        self._writer = writer(str(entry.folder), purge_step=0, filename_suffix=f".{entry.id}")
        self._began, self._step = entry.began, 0
        self._writer.add_text("config", f"```yaml\n{entry.config_text}```", 0)
        self._writer.flush()

    def log(self, rows: Sequence[Row]) -> None:
        """Write a scalar for each number."""
        for row in rows:
            self._step = row["step"]
            for name, value in metrics_of(row).items():
                self._writer.add_scalar(name, value, self._step, self._began + row.get("seconds", 0))
        self._writer.flush()

    def close(self, end: End, verdict: Sequence[str], card: str | None) -> None:
        """Write verdict and card as texts."""
        for name, text in (("verdict", "\n\n".join(verdict)), ("model card", card)):
            if text:
                self._writer.add_text(name, text, self._step)
        self._writer.close()


class MLflow(Tracker):
    """A run in `mlflow.db`, or where MLFLOW_TRACKING_URI says.

    Its metrics cannot be taken back, but a resume repeats them exactly: those that are there are skipped.
    """

    modules = ("mlflow", "sqlalchemy", "alembic")
    starts_anew = False

    @staticmethod
    def files(id: str) -> Sequence[str]:
        """A database of SQLite, and what SQLite keeps beside it."""
        return ("mlflow.db", "mlflow.db-journal", "mlflow.db-wal", "mlflow.db-shm")

    def open(self, entry: Entry) -> None:
        """Find the run by its tag, or create it with the config as its parameters."""
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
        mlflow = import_module("mlflow")
        self._entities = mlflow.entities
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:
            # No path in the URI: only SQLAlchemy 2.1 unquotes one, and MLflow creates the quoted folder.
            os.chdir(entry.folder)
            uri = "sqlite:///mlflow.db"
        client = self._client = mlflow.MlflowClient(tracking_uri=uri)
        name, tag = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT), f"{PROJECT}.entry"
        experiment = client.get_experiment_by_name(name)
        experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
        found = client.search_runs([experiment_id], f"tags.`{tag}` = '{entry.id}'")
        run = (
            found[0] if found else client.create_run(experiment_id, run_name=entry.name, tags={tag: entry.id})
        )
        self._run, self._began = run.info.run_id, entry.began
        client.update_run(self._run, status="RUNNING")
        self._known = {
            (name, each.step)
            for name in run.data.metrics
            for each in client.get_metric_history(self._run, name)
        }
        given = {_BY_MLFLOW.sub("_", key): short(str(value), 500) for key, value in entry.config.items()}
        new = [self._entities.Param(key, value) for key, value in given.items() if key not in run.data.params]
        for start in range(0, len(new), 100):  # the most that a call takes
            client.log_batch(self._run, params=new[start : start + 100])
        for key, value in run.data.params.items():  # a parameter of MLflow never changes
            if key in given and given[key] != value:
                client.set_tag(self._run, f"{key} on resume", given[key])

    def log(self, rows: Sequence[Row]) -> None:
        """Add the metrics that the run lacks."""
        new = list[Any]()
        for row in rows:
            step, milliseconds = row["step"], int(1000 * (self._began + row.get("seconds", 0)))
            for key, value in metrics_of(row).items():
                name = _BY_MLFLOW.sub("_", key)
                if (name, step) not in self._known:
                    new.append(self._entities.Metric(name, value, milliseconds, step))
        for start in range(0, len(new), 1000):  # the most that a call takes
            self._client.log_batch(self._run, metrics=new[start : start + 1000])

    def close(self, end: End, verdict: Sequence[str], card: str | None) -> None:
        """Keep the verdict as a tag; the card is the description of the run."""
        tags = {"verdict": "\n".join(verdict), "mlflow.note.content": card}
        for name, text in tags.items():
            if text:
                self._client.set_tag(self._run, name, short(text, 5000))
        status = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
        self._client.set_terminated(self._run, status[end])


class Wandb(Tracker):
    """A run of Weights & Biases: offline, for `wandb sync`, unless WANDB_MODE says `online`."""

    modules = ("wandb",)

    @staticmethod
    def files(id: str) -> Sequence[str]:
        """The folder that wandb names by the time and by the id, and what wandb writes in it."""
        run = f"*run-*-{id}"
        names = ("config.yaml", "output.log", "requirements.txt", "wandb-metadata.json", "wandb-summary.json")
        folders = ("files", "logs", "tmp/code", "tmp")
        inner = [f"run-{id}.wandb*", "logs/debug*.log", *(f"files/{name}" for name in (*names, "README.md"))]
        return [f"{run}/{name}" for name in (*inner, *folders)] + [run]

    def open(self, entry: Entry) -> None:
        """Continue the run of that id. Of an online run, the rows that the server has are skipped."""
        wandb = import_module("wandb")
        settings = wandb.Settings(
            console="off", silent=True, symlink=False, disable_git=True, save_code=False, x_disable_stats=True
        )
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=entry.id,
            name=entry.name,
            dir=str(entry.folder.parent),  # wandb adds its own name
            config=dict(entry.config),
            mode=os.environ.get("WANDB_MODE", "offline"),
            resume="allow",
            settings=settings,
        )
        self._first = self._run.starting_step

    def log(self, rows: Sequence[Row]) -> None:
        """Add the metrics of each row; wandb joins those of one step."""
        for row in rows:
            if row["step"] >= self._first:
                self._run.log(metrics_of(row), step=row["step"])

    def close(self, end: End, verdict: Sequence[str], card: str | None) -> None:
        """Keep the verdict in the summary, and the card as a file."""
        if verdict:
            self._run.summary["verdict"] = "\n".join(verdict)
        if card:
            path = Path(self._run.dir, "README.md")
            path.write_text(card, encoding="utf-8")
            self._run.save(str(path), base_path=self._run.dir, policy="now")
        self._run.finish(exit_code=int(end != "finished"))


class Trackio(Tracker):
    """A run in the folder alone, whatever the environment says; `trackio sync` sends it to a Space."""

    modules = ("trackio",)

    @staticmethod
    def files(id: str) -> Sequence[str]:
        """A database of SQLite, and what SQLite and Trackio keep beside it."""
        return [f"{PROJECT}.{end}" for end in ("db", "db-journal", "db-wal", "db-shm", "lock")]

    def open(self, entry: Entry) -> None:
        """Create the run. Trackio warns where it fails; `_failed` collects these warnings."""
        os.environ |= {"TRACKIO_DIR": str(entry.folder), "HF_HUB_OFFLINE": "1"}
        # On a network file system Trackio writes other files by default, and SQLite's WAL may fail.
        os.environ |= {"TRACKIO_STORAGE_MODE": "sqlite", "TRACKIO_SQLITE_JOURNAL_MODE": "DELETE"}
        for name in ("SPACE_ID", "SERVER_URL", "WEBHOOK_URL", "BUCKET_ID", "DATASET_ID"):
            os.environ.pop(f"TRACKIO_{name}", None)
        self._module, self._failed, self._step = import_module("trackio"), list[str](), 0
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *others: self._failed.append(str(message))
        self._run = self._module.init(
            project=PROJECT,
            name=entry.name,
            config=dict(entry.config),
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def log(self, rows: Sequence[Row]) -> None:
        """Add the metrics of each row."""
        for row in rows:
            self._step = row["step"]
            self._run.log(metrics_of(row), step=self._step)
        self._check()

    def close(self, end: End, verdict: Sequence[str], card: str | None) -> None:
        """Add verdict and card as texts of the last step."""
        texts = {"verdict": "\n\n".join(verdict), "model card": card}
        texts = {name: self._module.Markdown(text) for name, text in texts.items() if text}
        if texts:
            self._run.log(texts, step=self._step)
        self._run.finish()
        self._check()

    def _check(self) -> None:
        if self._failed:
            raise RuntimeError(self._failed[0])


TRACKERS: Mapping[TrackerName, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": Wandb,
    "trackio": Trackio,
}
