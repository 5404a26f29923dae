"""`bertcli export MODEL OUT`: the model for onnxruntime and the libraries on it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertcli.commands.options import Json, Model

if TYPE_CHECKING:
    from bertcli.export.comparison import Comparison


def export(
    model: Model,
    destination: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to write: a new one, or empty.")
    ],
    format_: Annotated[Literal["onnx"], typer.Option("--format", help="Of the model's file.")] = "onnx",
    encoder: Annotated[
        bool, typer.Option("--encoder", help="The encoder alone, for vectors, without the model's head.")
    ] = False,
    int8: Annotated[
        bool, typer.Option("--int8", help="Also a file with weights of 8 bits, compared with the other.")
    ] = False,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows to compare on, read as by predict --input; default: text of the model's run, or else "
            "bundled English messages.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of the text in the sample; twice: pairs."),
    ] = None,
    json_: Json = False,
) -> None:
    """Write a model as ONNX.

    OUT/onnx/model.onnx runs without PyTorch: in onnxruntime, sentence-transformers (backend="onnx") and
    transformers.js. Configuration and tokenizer are beside it. It reads any number of rows, of any length up
    to the model's positions. Nothing is written unless onnxruntime's outputs equal bertcli's within 1e-4 (of
    the largest output, if that is above 1), at three sizes that the exporter did not see.

    --int8 adds OUT/onnx/model_quantized.onnx, about a quarter of the size, and prints how often its answers
    are equal (or the cosine of its vectors), and its speed. At most 1,000 rows of the sample are read.

    bertcli predict, embed and similarity run OUT, and OUT/onnx/model_quantized.onnx. Needs the extra onnx:
    pip install 'bertcli[onnx]'.

    Example: bertcli export runs/spam spam-onnx --int8
    """
    from bertcli.errors import UserError
    from bertcli.export.folder import export_onnx
    from bertcli.export.graph import check_packages
    from bertcli.export.sample import read_sample
    from bertcli.export.source import read_source
    from bertcli.hf.convert import check_new

    if not int8 and (sample is not None or text):
        raise UserError("--sample and --text say what --int8 is compared on; give --int8 too")
    check_packages()
    check_new(destination)
    source = read_source(model, encoder)
    rows = read_sample(sample, source.settings, text, folder=source.folder) if int8 else None
    done = export_onnx(source, destination, rows)
    if json_:
        print(json.dumps({"folder": str(destination), **asdict(done)}))
        return
    size = f"{done.bytes / 1e6:,.1f} MB"
    print(f"{destination}: {', '.join(done.outputs)}; {size}; largest difference {done.difference:.1g}")
    if done.int8 is not None:
        print("\n".join(_table(done.int8)))


def _table(report: Comparison) -> list[str]:
    """Sizes, speeds and agreement, for people."""
    sizes = list(next(iter(report.forms.values())).rows_per_second)
    columns = "{:<20}{:>10}" + "{:>22}" * len(sizes)
    found = report.agreement
    if "mean_cosine" in found:
        line = (
            f"cosine of its vectors with bertcli's: mean {found['mean_cosine']:.4f}, least "
            f"{found['min_cosine']:.4f}"
        )
    elif "equal" in found:
        line = f"{found['equal']:.2%} of its {found['answers']:,} answers are bertcli's"
    else:
        line = (
            f"its values differ from bertcli's by {found['mean_difference']:.4f} in the mean, at most "
            f"{found['largest_difference']:.4f}"
        )
    return [
        columns.format("", "MB", *(f"rows/s, {size} at once" for size in sizes)),
        *(
            columns.format(
                name, f"{form.bytes / 1e6:,.1f}", *(f"{form.rows_per_second[size]:,.1f}" for size in sizes)
            )
            for name, form in report.forms.items()
        ),
        "int8 has one scale for all rows of a batch: in another batch, a row may have another answer",
        f"int8 ({7 if report.seven_bits else 8} bits of a weight are used), {report.rows:,} rows: {line}",
    ]
