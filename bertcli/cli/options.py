"""The arguments and options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bertcli.config import MOST, MOST_ROWS
from bertcli.system.urls import refuse_elsewhere


def _here(value: Any) -> Any:
    """The value of an option. Raises `UserError` for a URL in place of a path."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, Path):
            refuse_elsewhere(str(each))
    return value


def group(help: str) -> typer.Typer:
    """A command that has commands."""
    return typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=help)


def argument(default: Any, help: str, metavar: str | None = None) -> Any:
    """An argument of a command; a `default` of `...`: it is required. `metavar`: its name in the help."""
    return typer.Argument(default, help=help, metavar=metavar, callback=_here)


def option(default: Any, help: str, *names: str, **rules: Any) -> Any:
    """An option of a command.

    Args:
        default: `...`: it is required, or the default stands at the parameter.
        names: `--name`, if that of the parameter does not do.
        rules: further arguments of `typer.Option`.
    """
    return typer.Option(default, *names, help=help, **{"callback": _here, **rules})


def flag(help: str, name: str) -> Any:
    """An option without a value, which is off unless it is given; typer would add `--no-name` by itself."""
    return option(False, help, name)


def count(default: Any, help: str, *names: str) -> Any:
    """An option that is a number of things, from 1."""
    return option(default, help, *names, min=1, max=MOST)


def number(value: float) -> float:
    """The value of an option. Raises `typer.BadParameter` for nan, which is in every range."""
    if value != value:
        raise typer.BadParameter("nan is no number; give one")
    return value


_FOR_CONFIG = "config (YAML), the name of a bundled one, or a run's folder."
Config = Annotated[Path, argument(..., f"A pretraining {_FOR_CONFIG}", "CONFIG")]
FinetuningConfig = Annotated[Path, argument(..., f"A fine-tuning {_FOR_CONFIG}", "CONFIG")]
AnyConfig = Annotated[Path, argument(..., f"A pretraining or fine-tuning {_FOR_CONFIG}", "CONFIG")]
Set = Annotated[
    list[str] | None,
    option(..., "Override a key of the config: training.batch_size=8.", "--set", metavar="KEY=VALUE"),
]
Resume = Annotated[bool, option(..., "Continue exactly where the run stopped.", "--resume")]
Overwrite = Annotated[bool, option(..., "Delete the run in output_dir first.", "--overwrite")]
Json = Annotated[bool, option(..., "Print one JSON object.", "--json")]
JsonLines = Annotated[bool, option(..., "Print one JSON object a line.", "--json")]
Model = Annotated[Path, argument(..., "A run, a checkpoint, any model folder, or a hub id.", "MODEL")]
Input = Annotated[
    str | None, option(..., "A file, or a bundled sample; - reads standard input.", "--input", metavar="FILE")
]
Columns = Annotated[
    str | None,
    option(
        ...,
        "Names of all columns of a file without header (task.columns); '' if it has one.",
        metavar="A,B,...",
    ),
]
Quoting = Annotated[str | None, option(..., "Rule for quotes: auto, csv or none (task.quoting).")]
Separator = Annotated[
    str | None,
    option(..., "Character between fields: ';', '|', '\\t' (task.separator).", metavar="CHARACTER"),
]
IgnoreExtraFields = Annotated[
    bool | None,
    option(..., "Read rows with too many fields (task.ignore_extra_fields).", "--ignore-extra-fields"),
]
BatchSize = Annotated[
    int | None, option(..., "Rows computed at once; default: chosen for the device.", min=1, max=MOST_ROWS)
]
Device = Annotated[str, option(..., "The device: auto, cpu, cuda or cuda:N.")]
PrecisionName = Annotated[
    Literal["fp32", "bf16", "fp16", "auto"],
    option(
        ...,
        "Number format. In fp32 the output does not depend on the other texts of the batch, to 1e-5. "
        "bf16 and fp16 are faster on a GPU, and differ in the third digit. auto is the one that the hardware "
        "has, else fp32.",
    ),
]
