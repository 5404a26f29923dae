"""Whether a teacher fits its student, by config and `config.json`; neither weights nor torch are needed."""

from __future__ import annotations

from pathlib import Path

from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.hf.config_file import read_architecture
from bertcli.model.architecture import Architecture


def check_teacher(config: PretrainConfig, hidden: int) -> None:
    """Check what the config and the teacher's `config.json` say, before a corpus is read.

    Args:
        config: with a located teacher, if it has one; its objective is decided.
        hidden: size of the student.

    Raises:
        UserError: the objective has no words to distill; the teacher reads shorter rows, or has another
            hidden size although hidden states should be compared.
    """
    if (distillation := config.distillation) is None:
        return
    if config.data.objective == "rtd":
        raise UserError(
            "distillation: the objective is rtd, whose model predicts no words; set data.objective to mlm"
        )
    teacher = read_architecture(Path(distillation.teacher) / "config.json")
    check_teacher_reads(teacher, config.data.max_length, "data.max_length")
    if hidden != teacher.hidden and distillation.weights[2]:
        raise UserError(
            f"distillation.weights: the last one compares hidden states, but the student has {hidden} "
            f"features and the teacher {teacher.hidden}; set it to 0, or model.hidden to {teacher.hidden}"
        )


def check_teacher_reads(teacher: Architecture, length: int, key: str) -> None:
    """Raise `UserError` if the teacher cannot read rows of `length` tokens, which `key` asks for."""
    if length > teacher.usable_positions:
        raise UserError(
            f"{key} ({length}) is longer than the rows that distillation.teacher reads "
            f"({teacher.usable_positions}); lower {key}"
        )
