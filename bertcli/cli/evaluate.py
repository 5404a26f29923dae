"""`bertcli evaluate MODEL`: the pretraining losses on any text, or the task's metrics on a labeled file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertcli.cli import options
from bertcli.cli.options import count, flag, option
from bertcli.config import MOST_TOKENS
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.system.terminal import counted, in_options, say

if TYPE_CHECKING:
    from bertcli.config.task import TaskSettings
    from bertcli.inference.evaluate_task import Evaluated


def evaluate(
    model: options.Model,
    corpus: list[str] | None = option(None, "Files, folders, globs or a bundled sample; repeatable."),
    data: str | None = option(None, "A labeled file, or a bundled sample.", metavar="FILE"),
    format_: str | None = option(
        None,
        "Format. --corpus: text, sentences, jsonl or parquet; --data: a value of task.format.",
        "--format",
    ),
    encoding: str | None = option(None, "Encoding of the files (corpus.encoding or task.encoding)."),
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    json_: options.Json = False,
    wrong: Path | None = option(
        None, "--data: the file for wrongly predicted rows: .jsonl, .csv or .tsv.", metavar="FILE"
    ),
    suspect_labels: Path | None = option(
        None, "--data, or a run of folds: the file for rows with likely wrong labels.", metavar="FILE"
    ),
    skip_bad: bool = flag("--data: leave out rows that cannot be used.", "--skip-bad"),
    text: list[str] | None = option(None, "--data: the text's column; twice: pairs.", metavar="COLUMN"),
    label: str | None = option(None, "--data: the label's column.", metavar="COLUMN"),
    positive_label: str | None = option(
        None, "--data: the label (of two) whose F1 is measured.", metavar="LABEL"
    ),
    columns: options.Columns = None,
    separator: options.Separator = None,
    quoting: options.Quoting = None,
    ignore_extra_fields: options.IgnoreExtraFields = None,
    span_ends: str | None = option(
        None, "--data: spans that end inside a word: refuse or widen (task.span_ends)."
    ),
    offsets: str | None = option(
        None, "--data: what the numbers of spans count: characters or utf-16 (task.offsets)."
    ),
    overlaps: str | None = option(None, "--data: spans that overlap: refuse or longest (task.overlaps)."),
    document: str | None = option(None, "--corpus: what ends a document: blank-line or file."),
    join_lines: bool = flag("--corpus: join the lines of hard-wrapped text.", "--join-lines"),
    language: str | None = option(None, "--corpus: the language, for the sentence splitter."),
    text_key: str | None = option(None, "--corpus: the key (jsonl) or column (parquet) of the text."),
    max_length: int | None = option(
        None, "--corpus: tokens in a row; default: those of its training.", min=16, max=MOST_TOKENS
    ),
    batches: int | None = count(
        None, "--corpus: most batches, from a sample of the text; default: all of it."
    ),
) -> None:
    """Measure a model on text, or a fine-tuned one on labeled rows.

    --corpus: MLM loss, perplexity and accuracy, on rows that hold each token once. NSP loss and accuracy with
    its majority baseline are measured separately, on pairs drawn from the text. 15 % of the tokens are
    masked, the same ones at every call. A model without an NSP head is measured on MLM only. Options that are
    not given have the values of the run that made the model: length of rows, language, format, key, encoding.

    --data: the loss and every metric of the task that the model was fine-tuned for. The file is read as the
    training file was.

    --suspect-labels: the rows of a classification whose label is most likely wrong, the worst first, with
    the label that the model suggests. The model must not have learned from these rows. A run of folds
    (`folds`) needs no --data: it has an answer to each row of its training file that is of this kind.

    Example: bertcli evaluate runs/quickstart --corpus classics --batches 5
    """
    from bertcli.folders.locate import resolve_model
    from bertcli.inference import evaluate_corpus, outputs
    from bertcli.system.hardware import resolve_device
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
        "span_ends": span_ends,
        "offsets": offsets,
        "overlaps": overlaps,
    }
    only_corpus = {**of_corpus, "max_length": max_length, "batches": batches}
    only_data = {"wrong": wrong, "skip_bad": skip_bad, **of_data}
    if suspect_labels is not None:
        outputs.check_output(suspect_labels, [".jsonl", *outputs.SEPARATORS], data)
    if data is None and corpus is None and suspect_labels is not None:
        stray = {**only_corpus, **only_data, **reading}
        if names := [f"--{name.replace('_', '-')}" for name, value in stray.items() if value]:
            raise UserError(f"{', '.join(names)}: only with --data or --corpus; leave it out")
        _evaluate_folds(model, suspect_labels, json_)
        return
    only_data["suspect_labels"] = suspect_labels
    if (corpus is None) == (data is None):
        raise UserError(
            "give one of --corpus FILES (the losses of a pretrained model on text) and --data FILE (the "
            "metrics of a fine-tuned one on labeled rows)"
        )
    if stray := [name for name, value in (only_corpus if data else only_data).items() if value]:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in stray)
        raise UserError(f"{names}: only with {'--corpus' if data else '--data'}; leave it out")
    with ranks.joined():
        if data is None:
            given = {"files": corpus, **reading, **of_corpus}
            measured = evaluate_corpus.measure_corpus(
                resolve_model(model),
                {key: value for key, value in given.items() if value is not None},
                max_length,
                batch_size=batch_size or 32,
                batches=batches,
                device=ranks.own_device(resolve_device(device)),
            )
            _print_losses(measured, json_)
            return
        file = find_labeled_file(data)
        if wrong is not None:
            outputs.check_output(wrong, [".jsonl", *outputs.SEPARATORS], str(file))
        evaluated = _evaluate_data(
            resolve_model(model),
            file,
            {**reading, **of_data},
            skip_bad=skip_bad,
            batch_size=batch_size,
            device=device,
            doubted=suspect_labels is not None,
        )
        if ranks.is_first():  # the files first: whoever reads the scores may stop reading
            if wrong is not None:
                _write_wrong(wrong, evaluated)
            if suspect_labels is not None:
                _write_suspects(suspect_labels, evaluated.cases(), evaluated.task.settings)
        _print_scores(evaluated, json_)


def _print_losses(measured: dict[str, Any], json_: bool) -> None:
    if json_:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        print(f"{name:<16}{value:,.4f}" if isinstance(value, float) else f"{name:<16}{value:,}")


def _evaluate_data(
    folder: Path,
    file: InputPath,
    reading: dict[str, Any],
    skip_bad: bool,
    batch_size: int | None,
    device: str,
    doubted: bool,
) -> Evaluated:
    from bertcli.folders import sentence_transformers, task_folder
    from bertcli.inference import evaluate_task, inputs
    from bertcli.system.hardware import resolve_device
    from bertcli.tasks.label_doubts import check_doubted
    from bertcli.training import ranks

    if task_folder.folder_task(folder) is None and sentence_transformers.read_pooling(folder) is None:
        raise UserError(
            f"{folder}: is not fine-tuned for a task; a pretrained model is measured on text: --corpus FILES"
        )
    loaded = task_folder.load_task_folder(folder)
    if doubted:
        check_doubted(loaded.settings)
    if (seen := evaluate_task.seen_line(folder, file)) is not None and ranks.is_first():
        say(seen)
    where = ranks.own_device(resolve_device(device))
    return evaluate_task.evaluate_file(
        loaded,
        settings=inputs.adapt_settings(loaded.settings, **reading),
        data=file,
        skip_bad=skip_bad,
        device=where,
        batch_size=batch_size,
    )


def _evaluate_folds(model: Path, path: Path, json_: bool) -> None:
    """Write the suspect labels of a run of folds, and print the scores of its out-of-fold answers."""
    from bertcli.config.finetune import FinetuneConfig
    from bertcli.config.load import load_config
    from bertcli.folders.run_layout import RunLayout, read_folds
    from bertcli.inference.evaluate_task import read_cases, scores_table
    from bertcli.inference.outputs import check_not_read
    from bertcli.training.scores import Scores

    layout = RunLayout(model.expanduser())
    if not layout.out_of_fold.is_file():
        raise UserError(
            f"{model}: is no run with folds that have ended, so it has no answers to rows that its models "
            "did not learn from; give rows with --data FILE, or fine-tune with folds: 5"
        )
    config, summary = load_config(FinetuneConfig, layout.config), read_folds(layout)
    for read in (config.task.train, str(layout.out_of_fold)):
        check_not_read(path, read)
    cases = list(read_cases(layout.out_of_fold))
    _write_suspects(path, cases, config.task)
    scores = summary["out_of_fold"]
    if json_:
        print(json.dumps({"task": config.task.type, "rows": len(cases), **scores}))
    else:
        table = scores_table(Scores({"": scores.pop("loss", 0.0)}, {}, 0, metrics=scores))
        print(f"{'task':<28}{config.task.type}\n{'rows':<28}{len(cases):,}\n{table}")


def _write_wrong(path: Path, evaluated: Evaluated) -> None:
    """Write the wrong cases. In a table, a case is one row: its columns, its place, the prediction, and the
    right answer."""

    def answer(case: Mapping[str, Any]) -> dict[str, Any]:
        return {"where": case["where"], **case["prediction"], "right": case["right"]}

    between = evaluated.task.settings.label_separator
    _write_cases(path, evaluated.cases(only_wrong=True), answer, between=between)


def _write_suspects(path: Path, cases: Iterable[Mapping[str, Any]], settings: TaskSettings) -> None:
    from bertcli.tasks.label_doubts import suspect_labels

    suspects = suspect_labels(cases, settings)

    def answer(case: Mapping[str, Any]) -> dict[str, Any]:
        return {key: case[key] for key in case if key != "columns"}

    _write_cases(path, suspects, answer, between=settings.label_separator, as_given=True)
    rows = counted(len(suspects), "row")
    say(
        f"{rows} with a likely wrong label {'is' if len(suspects) == 1 else 'are'} in {path}, the worst first"
    )


def _write_cases(
    path: Path,
    cases: Iterable[Mapping[str, Any]],
    answer: Callable[[Mapping[str, Any]], dict[str, Any]],
    between: str | None,
    as_given: bool = False,
) -> None:
    """Write cases as JSON lines, or as a table with `answer` of each case beside its columns.

    `between`: what stands between several labels in a table (`task.label_separator`).
    `as_given`: the columns stay as they are, formulas too, because the rows go back into a training file.
    """
    from bertcli.inference.outputs import SEPARATORS, AnswerTable, beside, opened

    with opened(path) as file:
        if path.suffix not in SEPARATORS:
            for case in cases:
                file.write(json.dumps(case, ensure_ascii=False) + "\n")
            return
        table = AnswerTable(file, SEPARATORS[path.suffix], between)
        for case in cases:
            added = answer(case)
            row = beside(case["columns"], added)
            table.write(case["where"], row, own=row.keys() - added.keys() if as_given else ())
    table.tell()


def _print_scores(evaluated: Evaluated, json_: bool) -> None:
    from bertcli.inference.evaluate_task import scores_json, scores_table

    task, count = evaluated.task.settings.type, len(evaluated.examples)
    verdict = evaluated.task.verdict(evaluated.examples, evaluated.scores.metrics)
    if json_:
        scores = scores_json(evaluated.scores) | {"verdict": verdict.as_json()}
        print(json.dumps({"task": task, "rows": count, **scores}))
    else:
        print(f"{'task':<28}{task}\n{'rows':<28}{count:,}\n{scores_table(evaluated.scores)}")
        print(f"\n{in_options(verdict.line)}")
