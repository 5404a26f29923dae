"""`bertcli predict MODEL TEXT...`: predictions of a fine-tuned model for texts, or every row of a file."""

from pathlib import Path
from typing import Annotated

import typer

from bertcli.cli.options import (
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
from bertcli.system.terminal import say


def predict(
    model: Model,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts, or one row of a task whose rows have several."),
    ] = None,
    input_: Input = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .jsonl, .csv or .tsv file, written at the end; default: standard output."
        ),
    ] = None,
    tsv: Annotated[bool, typer.Option("--tsv", help="Print a table with tabs.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print a table with commas.")] = False,
    json_: JsonLines = False,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of the text, name or number (task.text); twice: pairs."),
    ] = None,
    pair: Annotated[
        bool, typer.Option("--pair", help="The model reads pairs, which its folder does not say.")
    ] = False,
    columns: Columns = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format: tsv, csv, jsonl, parquet, conll, squad, fasttext or trec (task.format).",
        ),
    ] = None,
    separator: Separator = None,
    quoting: Quoting = None,
    ignore_extra_fields: IgnoreExtraFields = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the file (task.encoding).")] = None,
    batch_size: BatchSize = None,
    device: Device = "auto",
    precision: PrecisionName = "fp32",
) -> None:
    """Run a fine-tuned model on texts.

    MODEL may also be a folder that bertcli export wrote, or an .onnx file in it; onnxruntime runs it.

    Texts on the command line get readable lines, or with --json JSON lines. A model for pairs takes two
    texts, one for questions takes QUESTION CONTEXT, one for choices takes TEXT CHOICE CHOICE...

    Rows of --input get JSON lines in their order: the row's columns, and the prediction (a column with the
    name of one of its parts is renamed given_NAME). The file is read as the training file was (TSV, CSV, JSON
    lines or a list, Parquet, CoNLL, SQuAD JSON, lines of fastText or TREC). A .txt and standard input have a
    text a line; tabs separate the texts of a pair. Files of any size are streamed. Each row has a prediction,
    even if its text is empty; a blank line is an empty text if a line is a text. A table (.csv, .tsv) has a '
    before cells that a spreadsheet would run as a formula.

    Example: bertcli predict runs/spam "You have won a prize" "See you at six"
    """
    from bertcli.folders.lengths import LongRows
    from bertcli.inference.inputs import adapt_settings, read_inputs
    from bertcli.inference.opened import Compute, open_task
    from bertcli.inference.outputs import (
        SEPARATORS,
        AnswerTable,
        CutRows,
        check_output,
        json_line,
        lines_to,
        opened,
        readable,
        row_json,
    )
    from bertcli.inference.predict import predict_stream
    from bertcli.system.errors import UserError

    asked = [suffix for suffix, is_asked in ((".tsv", tsv), (".csv", csv), (".jsonl", json_)) if is_asked]
    if len(asked) > 1:
        raise UserError("give one of --tsv, --csv and --json")
    if output is not None:
        check_output(output, asked or [".jsonl", *SEPARATORS], input_)
    loaded = open_task(model, Compute(device, precision))
    long_rows = LongRows(loaded.folder)
    settings = adapt_settings(
        loaded.settings,
        text,
        pair,
        columns=columns,
        format=format_,
        separator=separator,
        quoting=quoting,
        ignore_extra_fields=ignore_extra_fields,
        encoding=encoding,
    )
    runner = loaded.runner(settings, long_rows, batch_size)
    examples = read_inputs(texts or [], input_, settings, report=say, is_table=format_ not in (None, "auto"))
    suffix = output.suffix if output is not None else next(iter(asked), None)
    is_for_people = bool(texts) and texts != ["-"] and suffix is None
    cut = CutRows()
    with opened(output) as file:
        table = AnswerTable(file, SEPARATORS[suffix]) if suffix in SEPARATORS else None
        write_line = lines_to(file, readable if is_for_people else json_line)
        for answer in cut.watch(predict_stream(runner, loaded.tokenizer, examples)):
            if table is None:
                write_line(answer)
            else:
                table.write(answer.example.where, row_json(answer))
    if table is not None:
        table.tell()
    cut.tell()
    long_rows.tell()
