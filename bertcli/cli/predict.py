"""`bertcli predict`, `serve`: a model's answers, here or over HTTP; `suggest`: which rows to label next."""

import os
from pathlib import Path
from typing import Annotated, Literal

from bertcli.cli import options
from bertcli.cli.options import argument, count, flag, option
from bertcli.system.errors import UserError
from bertcli.system.terminal import counted, say

API_KEY = "BERTCLI_API_KEY"
"""The environment variable with the key that clients of `serve` must send."""

Text = Annotated[
    list[str] | None,
    option(..., "Column of the text, name or number (task.text); twice: pairs.", metavar="COLUMN"),
]
Format = Annotated[
    str | None,
    option(
        ...,
        "Format: tsv, csv, jsonl, parquet, conll, spans, squad, fasttext or trec (task.format).",
        "--format",
    ),
]
Encoding = Annotated[str | None, option(..., "Encoding of the file (task.encoding).")]
Output = Annotated[
    Path | None,
    option(..., "A .jsonl, .csv or .tsv file, written at the end; default: standard output.", metavar="FILE"),
]
Annotations = Annotated[
    str | None,
    option(
        ...,
        "Write entities to be corrected in a tool: doccano, prodigy, spacy, label-studio or brat (a folder).",
        metavar="TOOL",
    ),
]


def predict(
    model: options.Model,
    texts: list[str] | None = argument(None, "Texts, or one row of a task whose rows have several.", "TEXT"),
    input_: options.Input = None,
    output: Output = None,
    tsv: bool = flag("Print a table with tabs.", "--tsv"),
    csv: bool = flag("Print a table with commas.", "--csv"),
    json_: options.JsonLines = False,
    annotations: Annotations = None,
    min_probability: float = option(
        0.0,
        "Leave answers with a lower probability undecided: their label is null.",
        min=0.0,
        max=1.0,
        callback=options.number,
    ),
    text: Text = None,
    pair: bool = flag("The model reads pairs, which its folder does not say.", "--pair"),
    columns: options.Columns = None,
    format_: Format = None,
    separator: options.Separator = None,
    quoting: options.Quoting = None,
    ignore_extra_fields: options.IgnoreExtraFields = None,
    encoding: Encoding = None,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    precision: options.PrecisionName = "fp32",
) -> None:
    """Run a fine-tuned model on texts.

    MODEL may also be a folder that bertcli export wrote, or an .onnx file in it; onnxruntime runs it.

    Texts on the command line get readable lines, or with --json JSON lines. A model for pairs takes two
    texts, one for questions takes QUESTION CONTEXT, one for choices takes TEXT CHOICE CHOICE...

    Rows of --input get JSON lines in their order: the row's columns, and the prediction (a column with the
    name of one of its parts is renamed given_NAME). The file is read as the training file was (TSV, CSV, JSON
    lines or a list, Parquet, CoNLL, spans, SQuAD JSON, lines of fastText or TREC). A .txt and standard input
    have a text a line; tabs separate the texts of a pair. Files of any size are streamed. Each row has a
    prediction, even if its text is empty; a blank line is an empty text if a line is a text. A table (.csv,
    .tsv) has a ' before cells that a spreadsheet would run as a formula.

    --annotations writes entities as a tool for annotation reads them, to be corrected there and learned from:
    a .jsonl (doccano, prodigy, spacy), a .json (label-studio) or a new folder (brat).

    Example: bertcli predict runs/spam "Call 0800 123456 to claim your prize" "See you at six"
    """
    from bertcli.inference import annotations as tools
    from bertcli.inference import inputs, outputs, predict
    from bertcli.inference.opened import Compute, open_task

    asked = [suffix for suffix, is_asked in ((".tsv", tsv), (".csv", csv), (".jsonl", json_)) if is_asked]
    if len(asked) + (annotations is not None) > 1:
        raise UserError("give one of --tsv, --csv, --json and --annotations")
    if annotations is not None:
        tools.check_tool(annotations, output, input_)
    elif output is not None:
        outputs.check_output(output, asked or [".jsonl", *outputs.SEPARATORS], input_)
    runner, folder = open_task(model, Compute(device, precision))
    settings = inputs.adapt_settings(
        runner.task.settings,
        text,
        pair,
        columns=columns,
        format=format_,
        separator=separator,
        quoting=quoting,
        ignore_extra_fields=ignore_extra_fields,
        encoding=encoding,
    )
    cut = outputs.CutRows(folder)
    runner = runner.reading(settings, cut, batch_size)
    examples = inputs.read_inputs(
        texts or [], input_, settings, report=say, is_table=format_ not in (None, "auto")
    )
    sure = outputs.SureAnswers(min_probability)
    answers = cut.watch(sure.watch(predict.predict_stream(runner, examples)))
    if annotations is not None:
        tools.write_annotations(annotations, output, answers, settings=settings)
        cut.tell()
        return
    suffix = output.suffix if output is not None else next(iter(asked), None)
    is_for_people = bool(texts) and texts != ["-"] and suffix is None
    with outputs.opened(output) as file:
        table = (
            outputs.AnswerTable(file, outputs.SEPARATORS[suffix], settings.label_separator)
            if suffix in outputs.SEPARATORS
            else None
        )
        for answer in answers:
            if table is not None:
                table.write(answer.example.where, outputs.row_json(answer))
            elif is_for_people:
                file.write(answer.prediction.readable(answer.example) + "\n")
            else:
                file.write(outputs.json_line(answer))
    if table is not None:
        table.tell()
    sure.tell()
    cut.tell()


def suggest(
    model: options.Model,
    file: str = argument(..., "The rows to choose from; - reads standard input.", "FILE"),
    number: int = count(100, "Number of rows to suggest.", "--number", "-n"),
    output: Output = None,
    json_: options.JsonLines = False,
    annotations: Annotations = None,
    text: Text = None,
    columns: options.Columns = None,
    format_: Format = None,
    separator: options.Separator = None,
    quoting: options.Quoting = None,
    ignore_extra_fields: options.IgnoreExtraFields = None,
    encoding: Encoding = None,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    precision: options.PrecisionName = "fp32",
) -> None:
    """Choose the rows to label next.

    They are rows of FILE without a label, of which the model is unsure, and that differ from each other: no
    two of them have two thirds of their tokens in common. Each has its own columns as they are, to go back
    into the training file, the model's answer, and its uncertainty: 0 is sure, 1 is a tie. The most useful
    row comes first, so that the first ten are a good choice of ten.

    The uncertainty is that of the two likeliest labels; with several labels a text, that of the least sure
    label; for entities, that of the geometric mean over the words. A regression has none. Files of any size
    are streamed.

    Example: bertcli suggest runs/spam new.csv -n 5 --output next.csv
    """
    from bertcli.inference import annotations as tools
    from bertcli.inference import inputs, outputs
    from bertcli.inference import suggest as choice
    from bertcli.inference.opened import Compute, open_task

    if json_ and (annotations or output) is not None:
        raise UserError("--json writes to standard output; leave it out, or give --output FILE.jsonl alone")
    if annotations is not None:
        tools.check_tool(annotations, output, file)
    elif output is not None:
        outputs.check_output(output, [".jsonl", *outputs.SEPARATORS], file)
    runner, folder = open_task(model, Compute(device, precision))
    settings = inputs.adapt_settings(
        runner.task.settings,
        text,
        columns=columns,
        format=format_,
        separator=separator,
        quoting=quoting,
        ignore_extra_fields=ignore_extra_fields,
        encoding=encoding,
    )
    cut = outputs.CutRows(folder)
    runner = runner.reading(settings, cut, batch_size)
    rows = inputs.read_inputs([], file, settings, report=say, is_table=format_ not in (None, "auto"))
    found = choice.suggest(runner, choice.without_labels(rows, settings, report=say), number, watch=cut.watch)
    if annotations is not None:
        tools.write_annotations(annotations, output, (row.answer for row in found), settings=settings)
    else:
        with outputs.opened(output) as stream:
            suffix = output.suffix if output else ".jsonl" if json_ else ""
            choice.write(stream, found, suffix, between=settings.label_separator)
    cut.tell()
    if len(found) < number:
        say(f"{counted(len(found), 'row')}, not {number:,}: there are no more that differ from each other")


def serve(
    models: list[str] = argument(
        ..., "Models to serve; NAME=MODEL gives one another name than its folder's.", "MODEL"
    ),
    port: int = option(8000, "The port to listen at; 0: a free one.", min=0, max=65535),
    host: str = option("127.0.0.1", "The address to listen at; 0.0.0.0: every one of this machine."),
    engine: Literal["auto", "bertcli", "onnxruntime"] = option(
        "auto", "What computes a model folder. auto: the faster one, measured at the start."
    ),
    api_key: bool = flag(f"Refuse to start unless {API_KEY} in the environment holds a key.", "--api-key"),
    device: options.Device = "auto",
    precision: options.PrecisionName = "fp32",
) -> None:
    """Answer requests over HTTP.

    POST /v1/bertcli/predict, /embed, /similarity and /fill-mask give the objects that --json prints. Programs
    that know text-embeddings-inference or OpenAI's embeddings find their routes: /embed, /rerank, /predict,
    /v1/embeddings. /docs shows all of them, /info the models, /metrics numbers for Prometheus. At / a browser
    finds a page, to try the models and to see which words decided.

    Requests that come together are computed together. Where clients must send a key, BERTCLI_API_KEY holds
    it: Authorization: Bearer KEY. SIGTERM and Ctrl-C let the requests that are under way end.

    Needs the extra serve: pip install 'bertcli[serve]'; with the extra onnx, onnxruntime computes where it is
    faster.

    Example: bertcli serve runs/spam --port 8000
    """
    from bertcli.corpus.streams import import_extra

    for package in ("fastapi", "uvicorn", "prometheus_client"):
        import_extra(package, "serve", "requests are answered by FastAPI and uvicorn", doing="serving")
    from bertcli.folders.locate import model_names
    from bertcli.inference.opened import Compute
    from bertcli.inference.serve import engine as engines
    from bertcli.inference.serve import server
    from bertcli.system.processes import bound_socket

    key = os.environ.get(API_KEY)
    if api_key and not key:
        raise UserError(f"--api-key: {API_KEY} is not set in the environment; put the key there")
    if key is not None and not (key.isascii() and key.isprintable() and key.strip() == key != ""):
        raise UserError(f"{API_KEY}: expected ASCII characters without blanks at the ends; set another key")
    named, compute = model_names(models), Compute(device, precision)
    chosen = None if engine == "auto" else engine
    with bound_socket(host, port) as listening:
        served = [engines.open_served(name, path, compute, engine=chosen) for name, path in named.items()]
        if key is None and host not in ("127.0.0.1", "::1", "localhost"):
            say(f"warning: {host} can be reached by others, and no key is needed: set {API_KEY}")
        server.serve(served, listening, key)
