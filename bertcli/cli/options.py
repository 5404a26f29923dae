"""The arguments and options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from bertcli.config.section import MOST_ROWS


def number(value: float) -> float:
    """The value of an option. Raises `typer.BadParameter` for nan, which is in every range."""
    if value != value:
        raise typer.BadParameter("nan is no number; give one")
    return value


Config = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="A pretraining config (YAML), or a run's folder.")
]
FinetuningConfig = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="A fine-tuning config (YAML), or a run's folder.")
]
AnyConfig = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="A pretraining or fine-tuning config (YAML), or a run's folder."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the config: training.batch_size=8."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue exactly where the run stopped.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Delete the run in output_dir first.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A run, a checkpoint, any model folder, or a hub id.")
]
Input = Annotated[
    str | None,
    typer.Option("--input", metavar="FILE", help="A file, or a bundled sample; - reads standard input."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="Names of all columns of a file without header (task.columns); '' if it has one.",
    ),
]
Quoting = Annotated[str | None, typer.Option(help="Rule for quotes: auto, csv or none (task.quoting).")]
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Character between fields: ';', '|', '\\t' (task.separator)."),
]
IgnoreExtraFields = Annotated[
    bool | None,
    typer.Option("--ignore-extra-fields", help="Read rows with too many fields (task.ignore_extra_fields)."),
]
BatchSize = Annotated[
    int | None,
    typer.Option(min=1, max=MOST_ROWS, help="Rows computed at once; default: chosen for the device."),
]
Device = Annotated[str, typer.Option(help="The device: auto, cpu, cuda or cuda:N.")]
PrecisionName = Annotated[
    Literal["fp32", "bf16", "fp16", "auto"],
    typer.Option(
        help="Number format. In fp32 the output does not depend on the other texts of the batch, to 1e-5. "
        "bf16 and fp16 are faster on a GPU, and differ in the third digit. auto is the one that the hardware "
        "has, else fp32."
    ),
]
