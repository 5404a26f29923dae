"""The layout of a run folder (`output_dir`): the only place that knows its names.

.lock            the process that uses the folder
.bertcli.json    which files in this folder are bertcli's (`bertcli.folders.mark`); without it there is no run
config.yaml      the resolved config, complete
data.json        the hashes of the training files, and the labels or the vocabulary's hash
metrics.jsonl    one line per logged step or evaluation
store/           the token store (`bertcli.corpus`), unless `corpus.store` names another place
checkpoints/     step-00000500, ... (`bertcli.training.checkpoint`); best: the best model so far
model/           the final model
trackers/        with `logging.trackers`: a folder for each (`bertcli.training.trackers`)
seed-N/, seeds.json   with `seeds`: several runs (`bertcli.training.train`)
trial-N/, trial-N-seed-M/, trials.jsonl, runs.log, best.yaml   the files of a search (`bertcli.advice.tune`)
fold-N/, final/, folds.json, out-of-fold.jsonl   with `folds`: the same, and the answers to all rows
verdict.json     what the run said at its end (`bertcli.folders.run_layout`)
report.html      the page of `bertcli report`

store, checkpoints, model and trackers may be links to folders on another disk.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from bertcli.folders.mark import write_own
from bertcli.system.errors import UserError, first_problem
from bertcli.system.files import disk_errors, plain_text

FILES = (
    *("config.yaml", "data.json", "metrics.jsonl", "seeds.json", "folds.json", "out-of-fold.jsonl"),
    *("verdict.json", "report.html", "trials.jsonl", "runs.log", "best.yaml"),
)
FOLDERS = ("model", "checkpoints", "trackers")
"""The contents of a run folder, besides the token store and the runs of seeds and folds."""
ALL_ROWS = "final"
"""The folder of the run that learns from the rows of all folds."""
_STEP = re.compile(r"step-(\d{8,})(?:\.(\d+))?")
_BEST = re.compile(r"best(\.\d+)?")
_PARTS = {"seeds": r"seed-\d+", "folds": rf"fold-\d+|{ALL_ROWS}"}
"""Key of a config -> the names of the folders of its runs."""
_TRIAL = r"trial-\d+(-seed-\d+)?"


class RunLayout:
    """The paths of the run in `root`."""

    def __init__(self, root: Path):
        self.root = root
        paths = [root / name for name in FILES]
        self.config, self.data, self.metrics, self.seeds, self.folds, self.out_of_fold = paths[:6]
        self.verdict, self.report, self.trials, self.runs_log, self.best_config = paths[6:]
        self.model, self.checkpoints, self.trackers = (root / name for name in FOLDERS)
        self.lock, self.store = root / ".lock", root / "store"
        self.best = self.checkpoints / "best"
        self._place: os.stat_result | None = None

    def settle(self) -> None:
        """Remember which folder is at `root` now, for `stays`."""
        self._place = self.root.stat()

    @contextmanager
    def stays(self) -> Iterator[None]:
        """Raise `UserError` if the folder has been moved or removed since `settle`, before the block or
        during it."""
        self._check_place()
        try:
            yield
        except Exception:  # a library's own error where its file is gone
            self._check_place()
            raise

    def _check_place(self) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if self._place is None or os.path.samestat(self._place, self.root.stat()):
                return
        raise UserError(
            f"output_dir {self.root} was moved or removed during the run, so nothing more is written there. "
            "Where it was moved, --resume goes on from the last checkpoint: set output_dir to its new place"
        )

    def step(self, step: int) -> Path:
        """The checkpoint after `step`, if no other file has that name (`training.checkpoint`)."""
        return self.checkpoints / f"step-{step:08d}"

    def part(self, name: str) -> Path:
        """The run folder of a seed or fold (`FinetuneConfig.parts`), or of the run on all rows."""
        return self.root / name

    def steps(self) -> list[Path]:
        """The folders with names of checkpoints, intact or damaged, the newest first."""
        return sorted(filter(is_step, _content(self.checkpoints)), key=by_number, reverse=True)

    @property
    def is_part(self) -> bool:
        """True if the run is one of those that another run consists of."""
        root = self.root.resolve()
        return root in RunLayout(root.parent).part_folders()

    def part_folders(self) -> list[Path]:
        """The folders of the runs of seeds, folds or trials that this run consists of, by its config."""
        config = self.config.read_text(encoding="utf-8", errors="replace") if self.config.is_file() else ""
        kinds = [names for key, names in _PARTS.items() if re.search(rf"(?m)^{key}:(?! null$)", config)]
        kinds += [_TRIAL] if self.trials.is_file() else []
        name = re.compile("|".join(kinds))
        return sorted(path for path in _content(self.root) if kinds and name.fullmatch(path.name))


def checkpoint_model(checkpoint: Path) -> Path:
    """The model folder in a checkpoint."""
    return checkpoint / "model"


def run_of_model(folder: Path) -> Path | None:
    """The run folder that a model folder belongs to by its name: it is the run's, or a checkpoint's."""
    if folder.name != "model":
        return None
    holder = folder.parent
    return holder.parent.parent if holder.parent.name == "checkpoints" else holder


def is_step(path: Path) -> bool:
    """True if a path is a folder (no link) with the name of a checkpoint."""
    return bool(_STEP.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()


def is_best(path: Path) -> bool:
    """True if a path is a folder (no link) with the name of the best model."""
    return bool(_BEST.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()


def step_name(path: Path) -> str:
    """The name of a checkpoint without the number after its step."""
    return path.name.partition(".")[0]


def by_number(path: Path) -> tuple[str, int]:
    """A key for sorting by step, then by number (step-00000500.1 comes after step-00000500)."""
    name, _, number = path.name.partition(".")
    return f"{name.removeprefix('step-'):0>30}", int(number or 0)


def _content(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


_Score = Annotated[float, Field(strict=True, ge=-1e100, le=1e100)]


@with_config(ConfigDict(extra="forbid", allow_inf_nan=False))
@dataclass(frozen=True)
class KeptVerdict:
    """The verdict of a run, as it is kept in a file.

    Attributes:
        step: the last one of the run when it ended; a run that goes on later has other scores.
        lines: the verdict, then the other lines that were said.
        baseline: metric -> the score of an answer that reads no text; empty for pretraining.
    """

    step: Annotated[int, Field(strict=True, ge=0, le=1 << 53)]
    lines: Sequence[str]
    baseline: Mapping[str, _Score] = field(default_factory=dict)


def write_verdict(path: Path, verdict: KeptVerdict) -> None:
    """Replace the verdict of a run. Raises `UserError`: a full disk, or a file that bertcli did not write."""
    with disk_errors(f"{path}: could not be written"):
        write_own(path, json.dumps(asdict(verdict), indent=1, ensure_ascii=False) + "\n")


def read_verdict(path: Path) -> KeptVerdict | None:
    """The verdict of a run; None if it has not ended yet. Raises `UserError` if the file is damaged."""
    if not path.exists():
        return None
    try:
        return TypeAdapter(KeptVerdict).validate_python(json.loads(plain_text(path)))
    except (ValueError, RecursionError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else error
        raise UserError(
            f"{path}: damaged ({reason}); remove it, and finish the run again with --resume to have it back"
        ) from None


def read_folds(layout: RunLayout) -> dict[str, Any]:
    """The summary of a run of folds (`training.train`). Raises `UserError` if it is missing or damaged."""
    try:
        summary = json.loads(plain_text(layout.folds))
        if not all(isinstance(summary[key], dict) for key in ("metrics", "runs", "out_of_fold")):
            raise ValueError("it is no summary of folds")
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise UserError(
            f"{layout.folds}: missing or damaged ({error}); finish the run again with --resume"
        ) from None
    return summary
