"""`bertcli similarity MODEL QUERY... --input FILE`: the texts of a file that are nearest to each query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bertcli.commands.options import (
    BatchSize,
    Columns,
    Device,
    IgnoreExtraFields,
    Input,
    JsonLines,
    Model,
    PrecisionName,
    Quoting,
    Separator,
)
from bertcli.config.section import MOST
from bertcli.terminal import say


def similarity(
    model: Model,
    queries: Annotated[
        list[str],
        typer.Argument(metavar="QUERY", help="Texts, or - for a pipe; without --input one text and others."),
    ],
    input_: Input = None,
    vectors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The vectors of --input: a .npy that bertcli embed made of it."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=MOST, help="Texts for each query.")] = 10,
    json_: JsonLines = False,
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
    """Find the texts that are most similar to a query.

    Each line or row of --input is compared with each QUERY by the cosine of their vectors (bertcli embed),
    and the nearest ones are printed, the nearest first. Files of any size are streamed. If many queries are
    asked of one file, save its vectors once (bertcli embed MODEL --input FILE --output FILE.npy), and give
    them by --vectors. Without --input, the first text is compared with the others.

    Example: bertcli similarity runs/search "how do I reset it" --input manual.txt --top 3
    """
    from bertcli.config.finetune import TaskSettings
    from bertcli.errors import UserError
    from bertcli.hf.lengths import LongRows
    from bertcli.inference.formats import beside
    from bertcli.inference.inputs import adapt_settings, read_inputs
    from bertcli.inference.nearest import VectorFile, nearest
    from bertcli.inference.opened import Compute, open_encoder
    from bertcli.inference.outputs import CutRows

    if input_ is None and (vectors is not None or len(queries) < 2):
        raise UserError("give the texts to compare with: --input FILE, or further texts after the first one")
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
    long_rows, cut = LongRows(encoder.folder), CutRows()
    embedder = encoder.embedder(long_rows, batch_size=batch_size)
    given, others = (queries, []) if input_ is not None else (queries[:1], queries[1:])
    asked = list(read_inputs(given, None, settings, report=say))
    queries_QD = embedder.matrix(asked, cut.watch)
    examples = read_inputs(others, input_, settings, report=say, is_table=format_ != "auto")
    file = None if vectors is None else VectorFile(vectors, encoder.model.architecture.hidden)
    found = nearest(
        queries_QD,
        examples,
        (lambda some: embedder.matrix(some, cut.watch)) if file is None else file.take,
        batch_size=embedder.batch_size,
        top=top,
    )
    if file is not None:
        file.check_end()
    for query, some in zip(asked, found, strict=True):
        if len(asked) > 1 and not json_:
            print(query.text_a)
        for rank, near in enumerate(some, start=1):
            if not json_:
                print(f"{near.similarity:8.4f}  {near.example.text_a}")
                continue
            answer = {
                "query": query.text_a,
                "rank": rank,
                "similarity": near.similarity,
                "where": near.example.where,
            }
            print(json.dumps(beside(near.example.columns, answer), ensure_ascii=False))
    cut.tell()
    long_rows.tell()
