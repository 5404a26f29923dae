"""Docstrings and the texts of constants and config keys name their subject first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.shape import PACKAGE, trees

LEANING = re.compile(
    r"(Of|That|Those|With|Without|By|For|From|At|To|But|And|Also|Not|If|In|Where|When|As|So|Only|Or|Which|Who)\b"
)
"""A text that begins so leans on the name above it."""


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, text) of every docstring, and of every text under a constant or a config key."""
    for node in ast.walk(tree):
        value = getattr(node, "value", None) if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value.strip()


def test_texts_name_their_subject_first() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text[:60]}"
        for path, tree in trees().items()
        for line, text in texts(tree)
        if LEANING.match(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "leans"),
    [
        ('decay = 0.01\n"""Of AdamW; not of biases."""', True),
        ('decay = 0.01\n"""Weight decay of AdamW."""', False),
        ('def f():\n    """Whether it is so."""', False),
        ('class A:\n    """Forward passes."""', False),
    ],
)
def test_a_text_that_leans_on_the_name_above_it_is_found(source: str, leans: bool) -> None:
    ((_, text),) = texts(ast.parse(source))
    assert bool(LEANING.match(text)) == leans
