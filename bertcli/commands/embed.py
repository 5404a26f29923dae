"""`bertcli embed MODEL TEXT...`: a vector for each text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bertcli.commands.options import (
    BatchSize,
    Columns,
    Device,
    IgnoreExtraFields,
    Input,
    Model,
    PrecisionName,
    Quoting,
    Separator,
)
from bertcli.config.section import MOST_TOKENS
from bertcli.terminal import say


def embed(
    model: Model,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Texts, a vector for each.")
    ] = None,
    input_: Input = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=".npy (float32), .jsonl or .parquet; standard output without it."),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="JSON lines on standard output, as without --output.")
    ] = False,
    pooling: Annotated[
        Literal["mean", "cls", "max"] | None, typer.Option(help="Default: the folder's own, else mean.")
    ] = None,
    normalize: Annotated[
        bool | None,
        typer.Option("--normalize/--no-normalize", help="To length 1. Default: the folder's own, else not."),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=3, max=MOST_TOKENS, help="Tokens of a text that are read. Default: the folder's own."
        ),
    ] = None,
    text: Annotated[
        str, typer.Option(metavar="COLUMN", help="The file's column of text, by name or number.")
    ] = "text",
    columns: Columns = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="tsv, csv, jsonl, parquet, fasttext, also of standard input; .txt: a text a line.",
        ),
    ] = "auto",
    separator: Separator = None,
    quoting: Quoting = None,
    ignore_extra_fields: IgnoreExtraFields = None,
    encoding: Annotated[str, typer.Option(help="Of the file.")] = "utf-8",
    batch_size: BatchSize = None,
    device: Device = "auto",
    precision: PrecisionName = "fp32",
) -> None:
    """Turn each text into a vector.

    The vector is the mean over its tokens, or what the folder of a sentence-transformers model says. If a
    model was not trained to embed, all cosine similarities are high, and only their order is useful.

    MODEL may also be a folder that bertcli export wrote, or an .onnx file in it; onnxruntime runs it.

    Example: bertcli embed runs/quickstart --input texts.txt --output vectors.npy
    """
    from bertcli.config.finetune import TaskSettings
    from bertcli.errors import UserError
    from bertcli.hf.lengths import LongRows, check_length
    from bertcli.inference.inputs import adapt_settings, read_inputs
    from bertcli.inference.opened import Compute, open_encoder
    from bertcli.inference.outputs import CutRows, check_output, opened, writing
    from bertcli.inference.vector_files import SUFFIXES, vector_line, write_vectors

    if json_ and output is not None:
        raise UserError("--json writes to standard output; leave it out, or give --output FILE.jsonl alone")
    if output is not None:
        check_output(output, SUFFIXES, input_)
    settings = adapt_settings(
        TaskSettings(type="classification", text="text"),
        [text],
        columns=columns,
        format=format_,
        separator=separator,
        quoting=quoting,
        ignore_extra_fields=ignore_extra_fields,
        encoding=encoding,
    )
    encoder = open_encoder(model, Compute(device, precision))
    if max_length is not None:
        check_length(encoder.folder, max_length, "--max-length")
    long_rows = LongRows(encoder.folder)
    embedder = encoder.embedder(
        long_rows, pooling, normalize=normalize, max_length=max_length, batch_size=batch_size
    )
    examples = read_inputs(texts or [], input_, settings, report=say, is_table=format_ != "auto")
    cut = CutRows()
    vectors = cut.watch(embedder.embed(examples))
    if output is None:
        with opened(None) as file:
            file.writelines(vector_line(embedded) for embedded in vectors)
    else:
        with writing(output):
            write_vectors(output, vectors, encoder.model.architecture.hidden)
    cut.tell()
    long_rows.tell()
