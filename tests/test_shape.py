"""How long files and functions are, how calls are written, what is documented, and how words are spelled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape import (
    PACKAGE,
    body_lines,
    functions,
    is_autograd,
    is_command,
    parameters,
    public_names,
    trees,
    unnamed_calls,
    variadic,
)

FILE_LINES, BODY_LINES, PARAMETERS, UNNAMED, DOCUMENTED = 300, 60, 7, 3, 0.95
BRITISH = re.compile(  # was_cancelled is a key of Label Studio's, CancelledError a class of asyncio
    r"colour|favour|honour|behaviour|neighbour|labell(ed|ing)|(?<!was_)cancell(ed(?!Error)|ing)|modell(ed|ing)|travell|fulfil\b"
    r"|(normal|initial|optim|serial|token|organ|recogn|summar|general|special|maxim|minim|random|categor"
    r"|regular|parallel|visual|util|priorit|standard|character|material|final|quant|vector|emphas)is(e|ing)"
    r"|analyse|\bcentre|defence|licence|artefact|judgement|catalogue|whilst|\bgrey|learnt|spoilt|\bspelt|burnt",
    re.IGNORECASE,
)


def where(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def own_functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Of the whole package, but for those that declare the options of a command."""
    for path, tree in trees().items():
        for name, function in functions(tree):
            if not is_command(path, name):
                yield f"{where(path)}: {name}", function


def test_files_are_short() -> None:
    lines = {where(path): len(path.read_text(encoding="utf-8").splitlines()) for path in trees()}
    assert [name for name, number in lines.items() if number > FILE_LINES] == []


def test_functions_are_short() -> None:
    assert {name for name, each in own_functions() if body_lines(each) > BODY_LINES} == set()


def test_functions_take_few_parameters() -> None:
    many = {name for name, each in own_functions() if parameters(each) > PARAMETERS and not is_autograd(name)}
    assert many == set()


def test_arguments_beyond_the_third_are_named() -> None:
    exempt = variadic(trees().values())
    calls = [
        f"{where(path)}:{line}: {called}"
        for path, tree in trees().items()
        for line, called in unnamed_calls(tree, UNNAMED, exempt)
    ]
    assert calls == []


def test_public_names_have_docstrings() -> None:
    public = {
        f"{where(path)}: {name}": has for path, tree in trees().items() for name, has in public_names(tree)
    }
    without = [name for name, has in public.items() if not has]
    assert 1 - len(without) / len(public) >= DOCUMENTED, without


def test_words_are_spelled_as_in_america() -> None:
    root = PACKAGE.parent
    files = [*(path for part in ("bertcli", "scripts", "docs") for path in (root / part).rglob("*"))]
    texts = [path for path in (*files, root / "README.md") if path.suffix in (".py", ".md", ".sh", ".yaml")]
    found = [
        f"{path.relative_to(root)}:{number}: {word[0]}"
        for path in texts
        if BRITISH.search(text := path.read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), 1)
        if (word := BRITISH.search(line))
    ]
    assert len(texts) > len(trees())
    assert found == []


LONG = "def f(a, *, b):\n    '''Doc.'''\n    c = 1\n\n    return c\n"


def test_the_lines_of_a_body_are_counted_without_its_docstring() -> None:
    ((name, function),) = functions(ast.parse(LONG))
    assert (name, body_lines(function), parameters(function)) == ("f", 3, 2)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from bertcli.a import f\nf(1, 2, 3, 4)", ["f"]),
        ("from bertcli import a\na.f(1, 2, 3, 4)", ["a.f"]),
        ("from bertcli.a import f\nf(1, 2, 3, b=4)", []),
        ("from bertcli.a import keyed\nkeyed(1, 2, 3, 4)", []),
        ("from os.path import join\njoin(1, 2, 3, 4)", []),
        (
            "class A:\n    def f(self): self.f(1, 2, 3, 4); self.other(1, 2, 3, 4); max(1, 2, 3, 4)",
            ["self.f"],
        ),
    ],
)
def test_calls_of_own_functions_are_told_from_others(code: str, found: list[str]) -> None:
    assert [called for _, called in unnamed_calls(ast.parse(code), 3, {"keyed"})] == found


def test_methods_and_classes_are_public_names_and_nested_functions_are_not() -> None:
    code = "'''Doc.'''\nclass A:\n    def f(self):\n        def g(): pass\n    def _h(self): pass\n"
    assert list(public_names(ast.parse(code))) == [("", True), ("A", False), ("A.f", False)]


def test_british_spelling_is_found() -> None:
    assert all(map(BRITISH.search, ("colour", "normalised", "serialising", "Behaviour", "learnt")))
    assert not any(
        map(BRITISH.search, ("color", "parallelism", "promise", "TOKENIZERS_PARALLELISM", "raise"))
    )
