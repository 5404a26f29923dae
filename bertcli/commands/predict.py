"""`bertcli predict MODEL TEXT...`: what a fine-tuned model says of texts, or of every row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertcli.commands.options import BatchSize, Columns, Device, Input, Model, PrecisionName, Quoting
from bertcli.terminal import say


def predict(
    model: Model,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts; or one row of a task whose rows are more than a text."),
    ] = None,
    input_: Input = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=".jsonl or .tsv, written when all is answered; standard output without it."
        ),
    ] = None,
    tsv: Annotated[bool, typer.Option("--tsv", help="A table with tabs.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of the text, name or number (task.text); twice: pairs."),
    ] = None,
    pair: Annotated[
        bool, typer.Option("--pair", help="The model reads pairs, though its folder does not say so.")
    ] = False,
    columns: Columns = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="tsv, csv, jsonl, parquet, conll or squad (task.format).")
    ] = None,
    quoting: Quoting = None,
    encoding: Annotated[str | None, typer.Option(help="Of the file (task.encoding).")] = None,
    batch_size: BatchSize = None,
    device: Device = "auto",
    precision: PrecisionName = "fp32",
) -> None:
    """Run a fine-tuned model on texts.

    Texts on the command line are answered in lines to read, or with --json in JSON lines. A model of pairs
    takes two texts, one for questions takes QUESTION CONTEXT, one for choices takes TEXT CHOICE CHOICE...

    Rows of --input are answered in JSON lines, in their order: the row's columns, and the answer (a column
    with the name of one of its parts becomes given_NAME). The file is read as the training file was (TSV,
    CSV, JSON lines, Parquet, CoNLL, SQuAD JSON), and a .txt as a text a line. So is standard input, with
    tabs between the texts of a pair. Files of any size are streamed. Each row has an answer, also one whose
    text is empty, as a blank line is where a line is a text. In a table (--tsv, .tsv) a ' stands before
    cells that a spreadsheet would run as a formula.

    Example: bertcli predict runs/spam "You have won a prize" "See you at six"
    """
    from bertcli.errors import UserError
    from bertcli.hardware import resolve_device, resolve_precision
    from bertcli.hf.locate import resolve_model
    from bertcli.hf.task_folder import load_task_folder
    from bertcli.inference.buffers import default_batch_size
    from bertcli.inference.examples import Runner
    from bertcli.inference.formats import AnswerTable, json_line, lines_to, readable
    from bertcli.inference.inputs import adapt_settings, read_inputs
    from bertcli.inference.outputs import CutRows, check_output, opened
    from bertcli.inference.predict import predict_stream
    from bertcli.tasks.registry import build_task

    if tsv and json_:
        raise UserError("give --tsv or --json, not both")
    if output is not None:
        check_output(output, [".tsv"] if tsv else [".jsonl"] if json_ else [".jsonl", ".tsv"], input_)
    where = resolve_device(device)
    loaded = load_task_folder(resolve_model(model))
    settings = adapt_settings(
        loaded.settings, text, pair, columns=columns, format=format_, quoting=quoting, encoding=encoding
    )
    runner = Runner(
        model=loaded.model.to(where).eval(),
        task=build_task(settings, loaded.labels),
        pad_id=loaded.tokenizer.pad_id,
        device=where,
        precision=resolve_precision(precision, where),
        batch_size=batch_size or default_batch_size(where),
    )
    examples = read_inputs(texts or [], input_, settings, report=say)
    is_table = tsv or (output is not None and output.suffix == ".tsv")
    is_for_people = bool(texts) and texts != ["-"] and output is None and not json_
    cut = CutRows()
    with opened(output) as file:
        table = AnswerTable(file)
        write = table.write if is_table else lines_to(file, readable if is_for_people else json_line)
        for answer in cut.watch(predict_stream(runner, loaded.tokenizer, examples)):
            write(answer)
    table.tell()
    cut.tell()
