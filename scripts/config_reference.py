"""The keys of both configs with types, defaults and meanings: docs/configuration.md, from the code.

    python scripts/config_reference.py     # writes it

The text of a key is the string under its field in bertcli/config/; `tests/scripts/test_config_reference.py`
compares the file with what this gives.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml

from bertcli.config import finetune
from bertcli.config.loop import Schedule
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import Section
from bertcli.families.family import Objective
from bertcli.families.fresh import FamilyName, Sharing, TokenizerKind

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
HEAD = """# Configuration

Every key of a config file, with its values, its default and its meaning. Written by
`python scripts/config_reference.py`; the text stands in `bertcli/config/`.
`--set training.steps=200` overrides a key. `auto` is decided at the start of a run, which says what it is.
"""
_NAMES = {
    "Probability": "number, 0 to 1",
    "Weight": "number, 0 or more",
    "Positive": "number, over 0",
    "Share": "number, over 0, under 1",
    "Count": "integer, 1 or more",
    "Column": "name or number",
    "Paths": "a path, or a list of paths",
    "Auto": "auto",
    "int": "integer",
    "float": "number",
    "str": "text",
    "bool": "true or false",
    "None": "null",
}
_CHOICES = {
    "FamilyName": FamilyName,
    "Objective": Objective,
    "Schedule": Schedule,
    "Sharing": Sharing,
    "TaskType": finetune.TaskType,
    "TokenizerKind": TokenizerKind,
}
_LIMITS = {"ge": "{} or more", "gt": "over {}", "le": "at most {}", "lt": "under {}"}


def page() -> str:
    """The whole document."""
    parts = [HEAD]
    for title, root in (("bertcli pretrain", PretrainConfig), ("bertcli finetune", finetune.FinetuneConfig)):
        parts.append(f"## `{title}`\n")
        parts += section(root, "")
    return "\n".join(parts)


def section(kind: type[Section], prefix: str) -> Iterator[str]:
    """The table of a section's own keys, then those of the sections in it."""
    rows, inner = [], []
    texts = field_texts(kind)
    for name, field in kind.model_fields.items():
        annotation, text = texts[name]
        sections = [each for each in (field.annotation, *get_args(field.annotation)) if is_section(each)]
        if sections:
            inner.append((f"{prefix}{name}.", sections[0]))
            continue
        default = "**required**" if field.is_required() else f"`{shown(field.default)}`"
        rows.append(f"| `{prefix}{name}` | {values(annotation)} | {default} | {text} |")
    if prefix:
        yield f"### {prefix.rstrip('.')}\n"
    yield f"{' '.join((kind.__doc__ or '').split())}\n"
    yield "\n".join(["| key | values | default | meaning |", "|---|---|---|---|", *rows, ""])
    for name, each in inner:
        yield from section(each, name)


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def shown(value: Any) -> str:
    """A default as YAML writes it."""
    plain = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(plain, default_flow_style=True).removesuffix("...\n").strip()


def field_texts(kind: type[Section]) -> dict[str, tuple[ast.expr, str]]:
    """Name -> (annotation, the string under the field, in one line), of inherited fields too."""
    found: dict[str, tuple[ast.expr, str]] = {}
    for base in reversed(kind.__mro__[: kind.__mro__.index(Section)]):
        (tree,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(tree, ast.ClassDef)
        for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
            if isinstance(node, ast.AnnAssign):
                text = ""
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    text = " ".join(str(after.value.value).split())
                found[ast.unparse(node.target)] = node.annotation, text.replace("|", "\\|")
    return found


def values(annotation: ast.expr) -> str:
    """What a key may be, in words: `Annotated[int, Field(ge=16)] | None` -> integer, 16 or more; null."""
    if isinstance(annotation, ast.BinOp):
        one = ast.unparse(annotation.left)
        if ast.unparse(annotation.right) == f"tuple[{one}, {one}]":
            return f"{values(annotation.left)}; a list of two, start and end"
        return f"{values(annotation.left)}; {values(annotation.right)}"
    if isinstance(annotation, ast.Name) and annotation.id in _NAMES:
        return _NAMES[annotation.id]
    if isinstance(annotation, ast.Name):  # a name for a choice of words, such as `TaskType`
        return ", ".join(f"`{word}`" for word in get_args(_CHOICES[annotation.id]))
    if not isinstance(annotation, ast.Subscript):
        return _NAMES[ast.unparse(annotation)]
    kind, inner = ast.unparse(annotation.value), annotation.slice
    items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if kind == "Literal":
        return ", ".join(f"`{each.value}`" for each in items if isinstance(each, ast.Constant))
    if kind in ("Annotated", "Decided"):
        limits = [_LIMITS[each.arg or ""].format(ast.unparse(each.value)) for each in limits_of(items[1])]
        return ", ".join([values(items[0]), *limits]) + ("; auto" if kind == "Decided" else "")
    if kind == "dict":
        return f"a mapping to {values(items[1])}"
    return f"a list of {values(items[0])}"


def limits_of(field: ast.expr) -> list[ast.keyword]:
    """The bounds that a `Field(...)` of a number names."""
    return [each for each in getattr(field, "keywords", []) if each.arg in _LIMITS]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
