"""JSON with spans of characters, as doccano, Prodigy, spaCy and Label Studio write it -> marked texts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from bertcli.system.errors import UserError
from bertcli.system.terminal import counted, short
from bertcli.tasks.columns import Column, Recognized, Sample, text_column
from bertcli.tasks.examples import MarkedText
from bertcli.tasks.rows import open_jsonl
from bertcli.tasks.span_offsets import Found, Span, Unit, likely_unit, marked
from bertcli.tasks.table import BadRow, LabeledFile, Row, SkippedRow, each

LABEL_KEYS = ("label", "labels", "spans", "ents", "entities")
"""The keys that can hold the spans: doccano's two, Prodigy's, spaCy's, and those of several programs."""
_STARTS, _ENDS = ("start", "start_offset"), ("end", "end_offset")
_STUDIO = ("annotations", "completions", "predictions")
"""The keys of Label Studio beside `data`; releases before 1.0 have completions."""
_DECISIONS = ("reject", "ignore")
"""Prodigy's answers to rows that are no examples."""
_SAMPLE = 200
"""Number of rows that show whether a file holds spans."""
_EXPECTED = "expected [start, end, label], or an object with start, end and label"


def read_json_spans(file: LabeledFile) -> Iterator[MarkedText | BadRow]:
    """An example for each JSON object, in lines or in a list.

    `settings.text` and `settings.label` may name the keys of the text and of the spans. Rows that Prodigy's
    users rejected, and tasks of Label Studio that nobody annotated, are left out. `report` is called with the
    number of relations and other marks that are no spans; `note` with the unit of the offsets, if that had
    to be guessed.

    Raises `UserError` as `open_jsonl` does.
    """
    unit, unread, bare = _unit(file), Counter[str](), 0
    may_be_bare = file.settings.label is None and is_span_file(file)

    def example(row: Row) -> MarkedText:
        nonlocal bare
        if may_be_bare and not _is_studio(row.values) and not any(key in row.values for key in LABEL_KEYS):
            bare += 1
            return marked(row.where, row.values, Found(_text(row, file), []), unit=unit)
        found = _find(row, file)
        unread.update(found.unread)
        return marked(row.where, row.values, found, unit=unit)

    yield from each(open_jsonl(file).rows, example)
    report_unread(file, unread)
    if bare and file.labeled:
        file.note(
            f"{file.path}: {counted(bare, 'row')} with a text and without {', '.join(LABEL_KEYS[:-1])} or "
            f"{LABEL_KEYS[-1]}: read as texts without entities"
        )


def report_unread(file: LabeledFile, unread: Counter[str]) -> None:
    """Report the number of marks of each kind that are no spans, if there are any."""
    if unread:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in unread.most_common())
        file.report(f"{file.path}: not read, since they are no spans: {counts}")


def holds_spans(values: Mapping[str, Any], label: Any = None) -> bool:
    """True if a row of JSON holds spans of characters. `label`: the key that should hold them."""
    if _is_studio(values):
        return True
    keys = LABEL_KEYS if label is None else (label,)
    return any(are_spans(values.get(key)) for key in keys)


def is_marked(values: Mapping[str, Any]) -> bool:
    """True if somebody has marked a row of JSON: it has spans, or a finished annotation of Label Studio."""
    if not _is_studio(values):
        return holds_spans(values)
    annotations = next((values[key] for key in _STUDIO[:2] if key in values), None)
    done = annotations if isinstance(annotations, list) else []
    return any(isinstance(each, Mapping) and not _is_skipped(each) for each in done)


def _is_skipped(annotation: Mapping[str, Any]) -> bool:
    """True if somebody saw the task and left it out."""
    return bool(annotation.get("was_cancelled") or annotation.get("skipped"))


def is_span_file(file: LabeledFile) -> bool:
    """True if the first rows of a file of JSON objects hold spans."""
    try:
        rows = islice(open_jsonl(LabeledFile(file.path, file.settings)).rows, _SAMPLE)
        return any(isinstance(row, Row) and holds_spans(row.values, file.settings.label) for row in rows)
    except UserError:
        return False


def are_spans(value: Any) -> bool:
    """True if this is a list of spans with labels, and not empty."""
    return isinstance(value, list) and bool(value) and all(map(_is_span, value))


def _is_span(item: Any) -> bool:
    if isinstance(item, list):
        return len(item) == 3 and [type(each) for each in item] == [int, int, str]
    needed = (_STARTS, _ENDS, ("label", "labels"))
    return isinstance(item, Mapping) and all(any(key in item for key in keys) for keys in needed)


def _is_studio(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("data"), Mapping) and any(key in values for key in _STUDIO)


def recognize_spans(sample: Sample) -> Recognized | None:
    """The keys of `task` for brat's files, or for JSON objects with spans; None for other files."""
    task = Recognized({}, {}, "spans of characters")
    task.add("type", "token-classification", "entities by their characters")
    task.add("format", "spans", "by its content")
    if sample.format == "brat":
        return task
    columns = {column.name: column for column in sample.columns}
    if sample.format != "jsonl" or not columns:
        return None
    if "data" in columns and any(key in columns for key in _STUDIO):
        return _recognize_studio(task, columns)
    holders = [name for name in (*LABEL_KEYS, *columns) if name in columns and _holds(columns[name])]
    text = columns.get("text") or text_column(sample.columns)
    if not holders or text is None:
        return None
    if text.name != "text":
        task.keys["text"] = text.name
    if holders[0] not in LABEL_KEYS:
        task.keys["label"] = holders[0]
    return task


def _holds(column: Column) -> bool:
    lists = [value for value in column.values if value != []]
    return bool(lists) and all(map(are_spans, lists))


def _recognize_studio(task: Recognized, columns: Mapping[str, Column]) -> Recognized | None:
    """The keys for an export of Label Studio; None if no task has spans."""
    marks = [str(columns[name].values) for name in _STUDIO if name in columns]
    if not any(f"'{start}': " in mark for mark in marks for start in _STARTS):
        return None
    data = next((value for value in columns["data"].values if isinstance(value, Mapping)), {})
    texts = {key: len(text) for key, text in data.items() if isinstance(text, str)}
    if texts and "text" not in texts:
        task.keys["text"] = max(texts, key=texts.__getitem__)
    return task


def _text(row: Row, file: LabeledFile) -> str:
    (column, *_) = file.settings.text_columns or ("text",)
    return row.text(str(column))


def _find(row: Row, file: LabeledFile) -> Found:
    """The text and the spans of a row. Raises `BadRow` for one that cannot be read, `SkippedRow` for one that
    is no example."""
    settings, values = file.settings, row.values
    if _is_studio(values):
        text = _text(Row(f"{row.where}, data", row.number, values["data"]), file)
        return _studio(row, text) if file.labeled else Found(text, None)
    text = _text(row, file)
    if not file.labeled:
        return Found(text, None)
    if values.get("answer") in _DECISIONS:
        raise SkippedRow("that were rejected or ignored in Prodigy")
    given = None if settings.label is None else str(settings.label)
    there = [key for key in LABEL_KEYS if key in values]
    label = given or min(there, key=lambda key: _unlike_spans(values[key]), default=None)
    if label is None:
        raise BadRow(
            f"{row.where}: no key holds spans; its keys: {', '.join(values)}; expected one of "
            f"{', '.join(LABEL_KEYS)}, or the one that task.label names"
        )
    where, items = f"{row.where}, {label!r}", row.value(label)
    if items is None:
        items = []
    if not isinstance(items, list):
        raise BadRow(f"{where}: {short(str(items), 40)!r} is no list of spans; {_EXPECTED}")
    relations = values.get("relations")
    unread = Counter({"relations": len(relations)} if relations and isinstance(relations, list) else {})
    return Found(text, [_span(item, where) for item in items], unread)


def _unlike_spans(value: Any) -> int:
    """How little a value looks like spans. A row may have its label beside them, or a list of labels."""
    if not isinstance(value, list):
        return 3
    return 0 if are_spans(value) else 1 if not value else 2 if isinstance(value[0], str) else 0


def _span(item: Any, where: str) -> Span:
    if isinstance(item, list) and len(item) == 3:
        start, end, label, text = *item, None
    elif isinstance(item, Mapping):
        start, end = (_first(item, names, where) for names in (_STARTS, _ENDS))
        label = _label(item, where)
        text = item.get("text")
    else:
        raise BadRow(f"{where}: {short(str(item), 40)!r} is no span; {_EXPECTED}")
    if type(start) is not int or type(end) is not int:
        raise BadRow(f"{where}: the places {start!r} and {end!r} are not whole numbers; {_EXPECTED}")
    if not isinstance(label, str) or not label.strip():
        raise BadRow(f"{where}: the label {label!r} of the span {start}-{end} is not a text; {_EXPECTED}")
    return Span(start, end, label, text=text if isinstance(text, str) else None)


def _first(item: Mapping[str, Any], names: Sequence[str], where: str) -> Any:
    found = next((name for name in names if name in item), None)
    if found is None:
        raise BadRow(f"{where}: a span without {names[0]!r}; its keys: {', '.join(item)}; {_EXPECTED}")
    return item[found]


def _label(item: Mapping[str, Any], where: str) -> Any:
    """The label of an object: `label`, or the only one of `labels`, as Label Studio writes it."""
    labels = item.get("labels")
    if not isinstance(labels, list):
        return _first(item, ("label",), where)
    if len(labels) != 1:
        raise BadRow(
            f"{where}: {len(labels)} labels of one span ({', '.join(map(str, labels))}); a word has one tag: "
            "keep one of them"
        )
    return labels[0]


def _studio(row: Row, text: str) -> Found:
    """The spans that people marked in a task of Label Studio. Predictions are nobody's annotation."""
    key = next((key for key in _STUDIO if key in row.values), "")
    annotations = row.values[key] if key != "predictions" else []
    if not isinstance(annotations, list) or not all(isinstance(each, Mapping) for each in annotations):
        raise BadRow(f"{row.where}: {key!r} is no list of objects, as Label Studio writes it")
    done = [each for each in annotations if not _is_skipped(each)]
    if not done:
        raise SkippedRow("that nobody annotated in Label Studio")
    found = [_results(each.get("result"), f"{row.where}, {key}[{n}]") for n, each in enumerate(done)]
    if len({frozenset(spans) for spans, _ in found}) > 1:
        raise BadRow(
            f"{row.where}: {len(done)} annotations, which differ; a task has one: keep one of them in Label "
            "Studio"
        )
    spans, unread = found[0]
    return Found(text, spans, unread)


def _results(results: Any, where: str) -> tuple[list[Span], Counter[str]]:
    """The spans of an annotation, and the number of other results by their type."""
    if not isinstance(results, list) or not all(isinstance(each, Mapping) for each in results):
        raise BadRow(f"{where}: 'result' is no list of objects, as Label Studio writes it")
    spans, unread = list[Span](), Counter[str]()
    for result in results:
        value = result.get("value")
        if isinstance(value, Mapping) and any(key in value for key in _STARTS):
            spans.append(_span(value, where))
        else:
            unread[f"results of type {result.get('type')}"] += 1
    return spans, unread


def _unit(file: LabeledFile) -> Unit:
    """The unit of the offsets: what the settings say, or what fits the words of texts with emoji better."""
    if not file.labeled or file.settings.offsets != "auto":
        return "utf-16" if file.settings.offsets == "utf-16" else "characters"
    unit = likely_unit(_with_large_characters(file))
    if unit == "utf-16":
        file.note(
            f"{file.path}: the offsets are read as UTF-16 units, as JavaScript counts (task.offsets: "
            "utf-16): so the spans after emoji and the like fit the words better"
        )
    return unit


def _with_large_characters(file: LabeledFile) -> Iterator[tuple[str, list[Span]]]:
    """The texts with characters that have two UTF-16 units, and their spans."""
    for row in open_jsonl(LabeledFile(file.path, file.settings)).rows:
        try:
            found = None if isinstance(row, BadRow) else _find(row, file)
        except BadRow:
            continue  # the reader names it
        if found is not None and found.spans and max(found.text, default="") > "\uffff":
            yield found.text, found.spans
