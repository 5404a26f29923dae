"""The shape of source files: what is too long, takes too much, or is called without names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import bertcli

PACKAGE = Path(bertcli.__file__).parent
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> Mapping[Path, ast.Module]:
    """The syntax tree of each file of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function with its dotted name, those within functions and classes too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            name = f"{prefix}{node.name}"
            if isinstance(node, Function):
                yield name, node
            yield from functions(node, f"{name}.")
        else:
            yield from functions(node, prefix)


def body_lines(function: Function) -> int:
    """Lines of a function without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def parameters(function: Function) -> int:
    """How many it takes; `self` and `cls` are none."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return (
        len([name for name in names if name not in ("self", "cls")]) + bool(given.vararg) + bool(given.kwarg)
    )


def is_command(path: Path, name: str) -> bool:
    """Whether a function declares the options of a command, a parameter each."""
    return path.parent.name == "cli" and "." not in name and not name.startswith("_")


def is_autograd(name: str) -> bool:
    """`forward` of a `torch.autograd.Function`: torch gives it its arguments without names."""
    return name.endswith(".forward") and name.startswith("_")


def variadic(trees: Iterable[ast.Module]) -> set[str]:
    """The names of functions that take any number of arguments, which cannot be named."""
    return {node.name for tree in trees for _, node in functions(tree) if node.args.vararg}


def unnamed_calls(tree: ast.Module, most: int, exempt: set[str]) -> Iterator[tuple[int, str]]:
    """(line, what is called) of calls of this package's own with more than `most` arguments without names.

    The names in `exempt` are left out, as is `apply` of a `torch.autograd.Function`.
    """
    own = own_names(tree) - exempt
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > most:
            called = ast.unparse(node.func)
            parts = called.split(".")
            if parts[-1] == "apply" or parts[-1] in exempt:
                continue
            if parts[0] in own or (parts[0] in ("self", "cls") and len(parts) == 2 and parts[1] in own):
                yield node.lineno, called


def own_names(tree: ast.Module) -> set[str]:
    """What a module imports from bertcli, and the functions, methods and classes that it defines."""
    names = {name.rpartition(".")[2] for name, _ in functions(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bertcli":
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def public_names(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """(name, whether documented) of a module, named "", and of its public classes, methods and functions."""
    yield "", ast.get_docstring(tree) is not None
    for node in tree.body:
        yield from _public(node, "")


def _public(node: ast.AST, prefix: str) -> Iterator[tuple[str, bool]]:
    if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
        return
    yield f"{prefix}{node.name}", ast.get_docstring(node) is not None
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            yield from _public(child, f"{prefix}{node.name}.")
