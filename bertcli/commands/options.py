"""The arguments and options that predict, embed and evaluate share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A run folder, a model folder, any Hugging Face BERT, or a hub id."),
]
Input = Annotated[
    str | None,
    typer.Option("--input", metavar="FILE", help="A file, or a bundled sample; - reads standard input."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...", help="All columns of a file without header (task.columns); '' if it has one."
    ),
]
Quoting = Annotated[str | None, typer.Option(help="auto, csv or none (task.quoting).")]
BatchSize = Annotated[
    int | None, typer.Option(min=1, help="Rows at once; by default what the device is fast with.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
PrecisionName = Annotated[
    Literal["fp32", "bf16", "fp16", "auto"],
    typer.Option(
        help="fp32 gives a text the same answer in any company, to 1e-5; bf16 and fp16 are faster on a GPU, "
        "and differ in the third digit; auto is the one of them that the hardware is made for, else fp32."
    ),
]
