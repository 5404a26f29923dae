"""YAML -> values; values -> YAML that every reader takes as the same values, with comments for a person."""

from __future__ import annotations

import math
import re
import reprlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from bertcli.config.section import NO_TEXT
from bertcli.system.errors import UserError

_LINE_ENDS = re.compile("[\n\r\x85\u2028\u2029]")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_MOST_DIGITS = 400
"""Most digits of a number. No floating-point number has more, and Python refuses integers of thousands of
digits."""
_TEXT = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """PyYAML quotes what YAML 1.1 reads as another type; this one also quotes what `as_number` reads."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """The text's node. It is quoted if a reader may see a number or strip its ends (no-break spaces).

        Line ends are written as escapes, so that the text stays on one line.
        """
        is_quoted = as_number(text) is not None or text != text.strip() or _LINE_ENDS.search(text)
        return self.represent_scalar(_TEXT, text, style='"' if is_quoted else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def as_number(text: str) -> int | float | None:
    """The number that a bare word is, in decimal digits: `7`, `.5`, `1e-4`; None if it is a text.

    0123, 1:30, 0x10 and 1_000 are texts, because other readers take them for other numbers.
    """
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


class _Loader(yaml.SafeLoader):
    """YAML whose bare words are what they look like: numbers in decimal digits, true, false and null.

    Every other word is a text, also 0123, 1:30, yes or a date. Keys are texts, such as the labels `0` or
    `no`, and must be unique.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _yaml_error("a key must be a word, got a list or a mapping", key_node)
            key_node.tag, key_node.style = "tag:yaml.org,2002:str", '"'
            key = key_node.value
            if key in seen:
                raise _yaml_error(f"key {key!r} is given twice", key_node)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _yaml_error(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


_WORDS = {
    word: value
    for value, name in ((True, "true"), (False, "false"), (None, "null"))
    for word in (name, name.capitalize(), name.upper())
} | {"": None, "~": None}


def _construct_scalar(loader: _Loader, node: yaml.ScalarNode) -> Any:
    text = node.value
    if NO_TEXT.search(text):
        raise _yaml_error(f"{reprlib.repr(text)} has a character that no text can hold", node)
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    number = as_number(text)
    return text if number is None else number


_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    "tag:yaml.org,2002:str": _construct_scalar,
    "tag:yaml.org,2002:seq": yaml.SafeLoader.construct_yaml_seq,
    "tag:yaml.org,2002:map": yaml.SafeLoader.construct_yaml_map,
    None: yaml.SafeLoader.construct_undefined,
}


def parse_yaml(text: str, where: str) -> Any:
    """The value of a YAML text. Raises `UserError` with line and column where it does not parse."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = str(error.problem or error.context)
        if "'\\t'" in problem:
            problem += "; YAML is indented with blanks: replace each tab"
        raise UserError(f"{where}{place}: not valid YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not valid YAML: {error}") from None
    except RecursionError:
        raise UserError(f"{where}: not a config: its lists or mappings are nested too deeply") from None


def yaml_text(value: Any, flow: bool | None = False, width: float = 80) -> str:
    """A YAML document, with the keys in their order.

    `flow`: True: each list and mapping is in one line, up to `width`; None: only those that hold no others.
    """
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=width
    )


def scalar(value: Any) -> str:
    """A value in one line, as it stands after a key."""
    return yaml_text(value, flow=True, width=math.inf).removesuffix("...\n").strip()


def comment(text: str) -> str:
    """A text in one line without characters that YAML refuses also in a comment."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


WIDTH = 110
"""Most columns of a comment."""
_BESIDE = 60
"""Most columns of a comment beside its key."""
_COLUMN = 26
"""Column at which comments beside keys begin, if there is room."""


@dataclass(frozen=True)
class Line:
    """A key with its value and comments.

    Attributes:
        value: the value, or the default; ignored with `is_required`.
        above: the comment above the key; among all keys of a config, its meaning.
        beside: the comment beside it, which moves above if it is long; among all keys, its possible values.
        is_required: true if there is no default: the value is left empty, and the comment says so.
    """

    name: str
    value: Any
    above: str = ""
    beside: str = ""
    is_required: bool = False


@dataclass(frozen=True)
class Block:
    """A section.

    Attributes:
        name: its key; "" for a config.
        lines: its keys, and the sections in it.
        above: the comment above it; among all keys of a config, its meaning.
        is_out: true if all of it is a comment: the config is complete without it.
        is_list: true if its key holds a list of such sections.
    """

    name: str
    lines: Sequence[Line | Block]
    above: str = ""
    is_out: bool = False
    is_list: bool = False


def commented_yaml(lines: Sequence[Line | Block], head: str = "") -> str:
    """The YAML text of the lines; `head`: a comment of one or more lines before it."""
    top = [f"# {line}".rstrip() for line in head.split("\n")] if head else []
    return "\n".join([*top, *_lines(lines, "")]) + "\n"


def _lines(lines: Sequence[Line | Block], indent: str) -> Iterator[str]:
    for each in lines:
        if isinstance(each, Line):
            yield from _line(each, indent)
            continue
        yield ""
        keys = list(_lines(each.lines, "    " if each.is_list else "  "))
        if each.is_list:
            first = next(number for number, line in enumerate(keys) if not line.lstrip().startswith("#"))
            keys[first] = f"  - {keys[first].lstrip()}"
        inner = [f"{each.name}:", *keys]
        yield from (f"{indent}# {line}" for line in _wrapped(each.above, indent))
        yield from (f"{indent}# {line}" if each.is_out else f"{indent}{line}" for line in inner)


def _line(line: Line, indent: str) -> Iterator[str]:
    above = line.above
    beside = comment(f"required: {line.beside}" if line.is_required else line.beside)
    if len(beside) > _BESIDE:
        above, beside = " ".join(filter(None, [above, beside])), ""
    yield from (f"{indent}# {part}" for part in _wrapped(above, indent))
    value = "" if line.is_required else f" {scalar(line.value)}"
    items = line.value if isinstance(line.value, list) and len(value) > WIDTH else []
    written = f"{indent}{line.name}:{'' if items else value}"
    yield f"{written:<{_COLUMN}} # {beside}" if beside else written
    yield from (f"{indent}  - {scalar(item)}" for item in items)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(comment(text), WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
