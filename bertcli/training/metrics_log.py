"""The log `metrics.jsonl`: one JSON object per logged step or evaluation, appended during the run."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bertcli.folders.run_layout import RunLayout
from bertcli.system.errors import UserError, first_problem
from bertcli.system.files import disk_errors, open_plain, plain_bytes, plain_text, write_text
from bertcli.system.terminal import Report
from bertcli.training import ranks
from bertcli.training.checkpoint import RunState
from bertcli.training.scores import Scores, StepReport

_ROW = b'{"step": '
"""The start of each row."""


Count = Annotated[int, Field(ge=0, le=1 << 53)]
"""A count; larger numbers in JSON are not exact in every program."""
Measured = Annotated[float, Field(ge=-1e100, le=1e100)]


class _Row(BaseModel):
    """A row of the log; further keys are scores by name. A key with a default may be missing, never null."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, Measured | None] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    step: Count
    split: Literal["train", "heldout"]
    epoch: Annotated[float, Field(ge=0, le=1e9)] = 0
    tokens: Count = 0
    skipped_steps: Count = 0
    seconds: Annotated[float, Field(ge=0, le=1e12)] = 0
    positive_label: str = ""


class MetricsLog:
    """The log of a run, a row a line. Only the first rank writes."""

    def __init__(self, layout: RunLayout):
        self._path = layout.metrics if ranks.is_first() else Path(os.devnull)
        # Unbuffered: a row that did not fit on a full disk is not written again when the file is closed.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
        self._file = open(descriptor, "ab", buffering=0)  # noqa: SIM115  (closed by `close`)

    def write(self, row: dict[str, Any]) -> None:
        """Append a row immediately. Raises `UserError` if the disk is full."""
        with disk_errors(f"{self._path}: the metrics could not be written"):
            left = memoryview(f"{json.dumps(_as_json(row))}\n".encode())
            while left:
                left = left[self._file.write(left) :]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def cut_back(path: Path, step: int, every: int, report: Report) -> list[dict[str, Any]]:
    """Drop the rows after `step`, and an incomplete last one, so that each step has one row.

    Args:
        every: steps between two rows of training; if a resume changes it, the larger number.
        report: a function called for an incomplete row, and for missing rows up to `step`.

    Returns the rows that stay. Raises `UserError` as `read_metrics`, or if the disk is full.
    """
    rows = [row for row in read_metrics(path) if row["step"] <= step]
    if path.exists():
        text = plain_text(path, errors="replace")
        if text and not text.endswith("\n"):
            report(f"{path}: the last row is incomplete; it is removed")
        with disk_errors(f"{path}: the metrics could not be written"):
            write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    lost = _lost_steps([row["step"] for row in rows if row["split"] == "train"], step, every)
    if lost:
        why = "" if path.exists() else ": the file is gone"
        report(
            f"warning: {path}: the rows of {lost} are lost{why}. The training is not affected, but curves "
            "and tables lack them"
        )
    return rows


def _lost_steps(logged: Sequence[int], step: int, every: int) -> str:
    """The steps without rows at the start, or at the end up to `step`. A run always logs its first step."""
    if not logged:
        return f"steps 1 to {step}" if step else ""
    if logged[0] > 1:
        return f"steps 1 to {logged[0] - 1}"
    usual = max(every, logged[-1] - logged[-2]) if len(logged) > 1 else every  # the setting may have changed
    return f"steps {logged[-1] + 1} to {step}" if step - logged[-1] >= usual else ""


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a finished, running or killed run, without an incomplete last one; no file gives no rows.

    Raises `UserError` if any other line is not a row, or has a value of a wrong type, because the rows select
    the best model.
    """
    rows = []
    lines = plain_text(path, errors="replace").split("\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            _Row.model_validate(row)
            rows.append(row)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # the run was killed while it wrote this row
                continue
            reason = "not a row with step and split"
            if isinstance(error, ValidationError):
                reason += f" ({first_problem(error, 'row')})"
            raise UserError(
                f"{path}, line {number}: damaged: {reason}. If you know the row, restore it; else start a "
                "new run in another output_dir"
            ) from None
    return rows


def is_metrics(path: Path) -> bool:
    """True if a file has only rows; after a kill, the last one may be incomplete."""
    *lines, last = plain_bytes(path).split(b"\n")
    return all(line.startswith(_ROW) for line in lines) and last[: len(_ROW)] == _ROW[: len(last)]


def begins_as_metrics(path: Path) -> bool:
    """True if a path is a regular file that starts with a row, or with a part of one."""
    if path.is_symlink() or not path.is_file():
        return False
    with open_plain(path) as file:
        start = file.read(len(_ROW))
    return start == _ROW[: len(start)]


def has_evaluation(rows: Sequence[Mapping[str, Any]], step: int) -> bool:
    """True if `rows` have the evaluation after `step`."""
    return any(row["split"] == "heldout" and row["step"] == step for row in rows)


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    """The row for JSON: null replaces NaN and infinity, as in the loss of a skipped step."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def train_row(
    report: StepReport, state: RunState, steps_per_epoch: int | None, tokens_per_second: float
) -> dict[str, Any]:
    """The row of a step; it has the epoch if `steps_per_epoch` is given."""
    return {
        **_beginning(report, state, steps_per_epoch, split="train"),
        "learning_rate": report.learning_rate,
        "grad_norm": report.grad_norm,
        "tokens": state.tokens,
        "tokens_per_second": round(tokens_per_second, 1),
        "seconds": state.seconds,
        "skipped_steps": state.skipped_steps,
        **({"loss_scale": report.loss_scale.factor} if report.loss_scale else {}),
    }


def heldout_row(scores: Scores, state: RunState, steps_per_epoch: int | None) -> dict[str, Any]:
    """The row of an evaluation."""
    return {
        **_beginning(scores, state, steps_per_epoch, split="heldout"),
        **scores.label_of_f1,
        **scores.numbers,
        "tokens": state.tokens,
        "seconds": state.seconds,
    }


def term_key(term: str, what: str) -> str:
    """The key of a term in a row, such as `mlm_loss`; plain `loss` for a task's only, unnamed term."""
    return f"{term}_{what}" if term else what


def _beginning(scores: Scores, state: RunState, steps_per_epoch: int | None, split: str) -> dict[str, Any]:
    """The first values of a row of either kind."""
    epoch = {"epoch": round(state.step / steps_per_epoch, 4)} if steps_per_epoch else {}
    losses = {term_key(name, "loss"): loss for name, loss in scores.losses.items()}
    accuracies = {term_key(name, "accuracy"): accuracy for name, accuracy in scores.accuracies.items()}
    return {"step": state.step, **epoch, "split": split, "loss": scores.loss, **losses, **accuracies}
