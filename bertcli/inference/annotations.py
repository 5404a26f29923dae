"""Predicted entities -> the files of annotation tools, in which people correct them."""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from bertcli.config.task import TaskSettings
from bertcli.inference.outputs import check_output, opened, writing
from bertcli.inference.predict import Predicted
from bertcli.system.errors import UserError
from bertcli.system.terminal import either
from bertcli.tasks.entities import Tagged
from bertcli.tasks.examples import Example, Mention
from bertcli.tasks.facts import facts_of
from bertcli.tasks.span_files import LABEL_KEYS

Tool = Literal["doccano", "prodigy", "spacy", "label-studio", "brat"]
TOOLS: tuple[str, ...] = get_args(Tool)
_SUFFIXES = {"doccano": ".jsonl", "prodigy": ".jsonl", "spacy": ".jsonl", "label-studio": ".json"}
_OWN = {*LABEL_KEYS, "tokens", "tags", "answer", "annotations", "completions", "predictions", "relations"}
"""Columns of input that hold annotations, or a tool's own data: they are not written beside the new ones."""
_LINE = re.compile(r"[^\s\n](?:[^\n]*[^\s])?")
"""What stands in a line, without blanks at its ends."""
_NO_NAME = re.compile(r"[^\w.-]+")
_BLANKS = re.compile(r"\s+")
"""White space, which brat's types cannot hold."""


class Marked(Protocol):
    """An entity of a text: a prediction, or what people marked."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def type(self) -> str: ...


Write = Callable[[Example, Sequence[Marked]], None]
"""A function that writes the entities of one text."""


def check_tool(tool: str, output: Path | None, input_: str | None = None) -> None:
    """Raise `UserError` for a tool that is not known, or an `output` that its files cannot be written to."""
    if tool not in TOOLS:
        raise UserError(f"--annotations {tool}: expected {either(TOOLS)}")
    if tool != "brat":
        if output is not None:
            check_output(output, [_SUFFIXES[tool]], input_)
        return
    if output is None:
        raise UserError(
            "--annotations brat: writes a .txt and an .ann for each text; name their folder with --output"
        )
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: exists already, and is left as it is; name a new folder for brat's files")


def write_annotations(
    tool: str, output: Path | None, answers: Iterable[Predicted], settings: TaskSettings
) -> None:
    """Write the entities of all answers. Raises `UserError` for a model that finds none."""
    if "spans" not in facts_of(settings.type).formats:
        raise UserError(f"--annotations: is for models that find entities, not for {settings.type}")
    with annotations(tool, output, settings) as write:
        for answer in answers:
            assert isinstance(answer.prediction, Tagged)
            write(answer.example, answer.prediction.entities)


@contextmanager
def annotations(tool: str, output: Path | None, settings: TaskSettings) -> Iterator[Write]:
    """A function that writes the entities of each text as `tool` reads them.

    Offsets count characters. For doccano they count what `settings.offsets` says; auto: UTF-16 units.
    `output`: a file, a new folder for brat, or None for standard output.
    """
    is_utf_16 = tool == "doccano" and settings.offsets != "characters"
    unit = "utf-16" if is_utf_16 else "characters"
    if tool == "brat":
        assert output is not None
        with writing(output):
            output.mkdir(parents=True, exist_ok=True)
            yield _brat_writer(output)
        return
    with opened(output) as file:
        is_list = tool == "label-studio"
        between = "[\n" if is_list else ""

        def write(example: Example, entities: Sequence[Marked]) -> None:
            nonlocal between
            (text,) = example.texts
            others = {k: v for k, v in _others(example) if v != text and k != settings.label}
            row = _ROWS[tool](text, _in_units(text, entities, unit), others)
            file.write(between + json.dumps(row, ensure_ascii=False))
            between = ",\n" if is_list else "\n"

        yield write
        file.write("\n]\n" if between == ",\n" else "[]\n" if is_list else "\n" if between else "")


def _others(example: Example) -> Iterable[tuple[str, Any]]:
    """The row's own columns, as metadata."""
    columns = example.columns
    if isinstance(columns.get("data"), Mapping):  # a task of Label Studio
        columns = columns["data"]
    for key, value in columns.items():
        if key not in _OWN and not key.startswith("_"):
            yield key, value.hex() if isinstance(value, bytes) else value


def _in_units(text: str, entities: Iterable[Marked], unit: str) -> list[Mention]:
    def place(at: int) -> int:
        return at if unit == "characters" else len(text[:at].encode("utf-16-le", "surrogatepass")) // 2

    return [Mention(place(each.start), place(each.end), each.type) for each in entities]


def _doccano(text: str, found: list[Mention], others: dict[str, Any]) -> dict[str, Any]:
    return {**others, "text": text, "label": [list(each) for each in found]}


def _prodigy(text: str, found: list[Mention], others: dict[str, Any]) -> dict[str, Any]:
    meta = others.pop("meta", {})
    meta = {**others, **meta} if isinstance(meta, Mapping) else {**others, "meta": meta}
    return {"text": text, "spans": _objects(found), **({"meta": meta} if meta else {})}


def _spacy(text: str, found: list[Mention], others: dict[str, Any]) -> dict[str, Any]:
    return {**others, "text": text, "ents": _objects(found)}


def _objects(found: list[Mention]) -> list[dict[str, Any]]:
    return [{"start": each.start, "end": each.end, "label": each.type} for each in found]


def _label_studio(text: str, found: list[Mention], others: dict[str, Any]) -> dict[str, Any]:
    """A task with a prediction, which Label Studio shows for correction.

    The names `label` and `text` are those of its template for named entities.
    """
    results = [
        {
            "id": f"bertcli-{number}",
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "value": {"start": each.start, "end": each.end, "labels": [each.type]},
        }
        for number, each in enumerate(found)
    ]
    prediction = {"model_version": "bertcli", "result": results}
    return {"data": {**others, "text": text}, "predictions": [prediction]}


_ROWS = {"doccano": _doccano, "prodigy": _prodigy, "spacy": _spacy, "label-studio": _label_studio}


def _brat_writer(folder: Path) -> Write:
    """A writer of a `.txt` and an `.ann` for each text, named after its document, else by its number."""
    written = 0

    def write(example: Example, entities: Sequence[Marked]) -> None:
        nonlocal written
        written += 1
        (text,) = example.texts
        given = _NO_NAME.sub("-", str(example.columns.get("document", ""))).strip("-.")
        numbers = (f"{number:06}" for number in itertools.count(written))
        name = next(
            name
            for name in itertools.chain([given] if given else [], numbers)
            if not ((folder / f"{name}.txt").exists() or (folder / f"{name}.ann").exists())
        )
        lines = [
            f"T{number}\t{_BLANKS.sub('_', each.type)} {_fragments(text, each)}\n"
            for number, each in enumerate(entities, start=1)
        ]
        (folder / f"{name}.txt").write_bytes(text.encode())
        (folder / f"{name}.ann").write_bytes("".join(lines).encode())

    return write


def _fragments(text: str, entity: Marked) -> str:
    """The places of an entity, a tab, and its text. brat divides an entity at the end of a line."""
    found = [match.span() for match in _LINE.finditer(text, entity.start, entity.end)]
    places = ";".join(f"{start} {end}" for start, end in found)
    return f"{places}\t{' '.join(text[start:end] for start, end in found)}"
