"""`bertcli evaluate MODEL`: the pretraining losses on any text, or the task's metrics on a labeled file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertcli.cli.options import BatchSize, Columns, Device, IgnoreExtraFields, Json, Model, Quoting, Separator
from bertcli.config.section import MOST, MOST_TOKENS

if TYPE_CHECKING:
    from bertcli.inference.evaluate_task import EvaluatedFile


def evaluate(
    model: Model,
    corpus: Annotated[
        list[str] | None, typer.Option(help="Files, folders, globs or a bundled sample; repeatable.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="A labeled file, or a bundled sample.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format. --corpus: text, sentences, jsonl or parquet; --data: a value of task.format.",
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the files (corpus.encoding or task.encoding).")
    ] = None,
    batch_size: BatchSize = None,
    device: Device = "auto",
    json_: Json = False,
    wrong: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="--data: the file for wrongly predicted rows: .jsonl, .csv or .tsv."
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="--data: leave out rows that cannot be used.")
    ] = False,
    text: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="--data: the text's column; twice: pairs.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="--data: the label's column.")] = None,
    positive_label: Annotated[
        str | None, typer.Option(metavar="LABEL", help="--data: the label (of two) whose F1 is measured.")
    ] = None,
    columns: Columns = None,
    separator: Separator = None,
    quoting: Quoting = None,
    ignore_extra_fields: IgnoreExtraFields = None,
    document: Annotated[
        str | None, typer.Option(help="--corpus: what ends a document: blank-line or file.")
    ] = None,
    join_lines: Annotated[
        bool, typer.Option("--join-lines", help="--corpus: join the lines of hard-wrapped text.")
    ] = False,
    language: Annotated[
        str | None, typer.Option(help="--corpus: the language, for the sentence splitter.")
    ] = None,
    text_key: Annotated[
        str | None, typer.Option(help="--corpus: the key (jsonl) or column (parquet) of the text.")
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=16, max=MOST_TOKENS, help="--corpus: tokens in a row; default: those of its training."
        ),
    ] = None,
    batches: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST, help="--corpus: most batches, from a sample of the text; default: all of it."
        ),
    ] = None,
) -> None:
    """Measure a model on text, or a fine-tuned one on labeled rows.

    --corpus: MLM loss, perplexity and accuracy, on rows that hold each token once. NSP loss and accuracy with
    its majority baseline are measured separately, on pairs drawn from the text. 15 % of the tokens are
    masked, the same ones at every call. A model without an NSP head is measured on MLM only. Options that are
    not given have the values of the run that made the model: length of rows, language, format, key, encoding.

    --data: the loss and every metric of the task that the model was fine-tuned for. The file is read as the
    training file was.

    Example: bertcli evaluate runs/quickstart --corpus classics --batches 5
    """
    from bertcli.inference.outputs import SEPARATORS, check_output
    from bertcli.system.errors import UserError
    from bertcli.tasks.files import find_labeled_file
    from bertcli.training import ranks

    reading = {"format": format_, "encoding": encoding}
    of_corpus = {
        "document": document,
        "join_lines": join_lines or None,
        "language": language,
        "text_key": text_key,
    }
    of_data = {
        "text": text,
        "label": label,
        "positive_label": positive_label,
        "columns": columns,
        "separator": separator,
        "quoting": quoting,
        "ignore_extra_fields": ignore_extra_fields,
    }
    only_corpus = {**of_corpus, "max_length": max_length, "batches": batches}
    only_data = {"wrong": wrong, "skip_bad": skip_bad, **of_data}
    if (corpus is None) == (data is None):
        raise UserError(
            "give one of --corpus FILES (the losses of a pretrained model on text) and --data FILE (the "
            "metrics of a fine-tuned one on labeled rows)"
        )
    if stray := [name for name, value in (only_corpus if data else only_data).items() if value]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in stray)
        raise UserError(f"{options}: only with {'--corpus' if data else '--data'}; leave it out")
    with ranks.joined():
        if corpus is not None:
            given = {"files": corpus, **reading, **of_corpus}
            _evaluate_corpus(
                model,
                given,
                max_length,
                batch_size=batch_size or 32,
                batches=batches,
                device=device,
                json_=json_,
            )
        elif data is not None:
            given = {**reading, **of_data}
            if wrong is not None:
                check_output(wrong, [".jsonl", *SEPARATORS], str(find_labeled_file(data)))
            evaluated = _evaluate_data(
                model, data, given, skip_bad=skip_bad, batch_size=batch_size, device=device
            )
            if wrong is not None and ranks.is_first():
                _write_wrong(wrong, evaluated)  # first: whoever reads the scores may stop reading
            _print_scores(evaluated, json_)


def _evaluate_corpus(
    model: Path,
    corpus: dict[str, Any],
    max_length: int | None,
    batch_size: int,
    batches: int | None,
    device: str,
    json_: bool,
) -> None:
    from bertcli.folders.locate import resolve_model
    from bertcli.inference.evaluate_corpus import measure_corpus
    from bertcli.system.hardware import resolve_device
    from bertcli.training import ranks

    given = {key: value for key, value in corpus.items() if value is not None}
    folder, own = resolve_model(model), ranks.own_device(resolve_device(device))
    measured = measure_corpus(folder, given, max_length, batch_size=batch_size, batches=batches, device=own)
    if json_:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        print(f"{name:<16}{value:,.4f}" if isinstance(value, float) else f"{name:<16}{value:,}")


def _evaluate_data(
    model: Path, data: str, reading: dict[str, Any], skip_bad: bool, batch_size: int | None, device: str
) -> EvaluatedFile:
    from bertcli.folders.locate import resolve_model
    from bertcli.folders.sentence_transformers import read_pooling
    from bertcli.folders.task_folder import folder_task, load_task_folder
    from bertcli.inference.evaluate_task import evaluate_file, seen_line
    from bertcli.inference.inputs import adapt_settings
    from bertcli.inference.predict import default_batch_size
    from bertcli.system.errors import UserError
    from bertcli.system.hardware import resolve_device
    from bertcli.system.terminal import say
    from bertcli.tasks.files import find_labeled_file
    from bertcli.training import ranks

    file, folder = find_labeled_file(data), resolve_model(model)
    if folder_task(folder) is None and read_pooling(folder) is None:
        raise UserError(
            f"{folder}: is not fine-tuned for a task; a pretrained model is measured on text: --corpus FILES"
        )
    loaded = load_task_folder(folder)
    if (seen := seen_line(folder, file)) is not None and ranks.is_first():
        say(seen)
    where = ranks.own_device(resolve_device(device))
    return evaluate_file(
        loaded,
        settings=adapt_settings(loaded.settings, **reading),
        data=file,
        skip_bad=skip_bad,
        device=where,
        batch_size=batch_size or default_batch_size(where),
        report=say,
    )


def _write_wrong(path: Path, evaluated: EvaluatedFile) -> None:
    """Write the wrong cases. In a table, a case is one row: its columns, its place, the prediction, and the
    right answer."""
    from bertcli.inference.outputs import SEPARATORS, AnswerTable, beside, opened

    with opened(path) as file:
        if path.suffix not in SEPARATORS:
            for case in evaluated.wrong_cases():
                file.write(json.dumps(case, ensure_ascii=False) + "\n")
            return
        table = AnswerTable(file, SEPARATORS[path.suffix])
        for case in evaluated.wrong_cases():
            answer = {"where": case["where"], **case["prediction"], "right": case["right"]}
            table.write(case["where"], beside(case["columns"], answer))
    table.tell()


def _print_scores(evaluated: EvaluatedFile, json_: bool) -> None:
    from bertcli.inference.evaluate_task import scores_json, scores_table
    from bertcli.system.terminal import in_options

    task, count = evaluated.settings.type, len(evaluated.examples)
    verdict = evaluated.task.verdict(evaluated.examples, evaluated.scores.metrics)
    if json_:
        scores = scores_json(evaluated.scores) | {"verdict": verdict.as_json()}
        print(json.dumps({"task": task, "rows": count, **scores}))
    else:
        print(f"{'task':<22}{task}\n{'rows':<22}{count:,}\n{scores_table(evaluated.scores)}")
        print(f"\n{in_options(verdict.line)}")
