"""A task is a unit, and so is an objective: what belongs to one stands in its room, and others ask for it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from bertcli.objectives.registry import OBJECTIVES
from bertcli.tasks.registry import TASKS
from tests.shape import PACKAGE, trees

NAMES = {*OBJECTIVES, *(each.pairs.term for each in OBJECTIVES.values() if each.pairs.is_pair)}
"""The values of `data.objective`, and the terms of pairs."""


def files() -> Iterator[tuple[str, ast.Module]]:
    """(path from the package, syntax tree) of each file."""
    return ((path.relative_to(PACKAGE).as_posix(), tree) for path, tree in trees().items())


def quoting(names: Collection[str], room: str) -> list[str]:
    """The files outside a room in which a text is one of the names."""
    return [
        file
        for file, tree in files()
        if not file.startswith(f"{room}/")
        and any(isinstance(node, ast.Constant) and node.value in names for node in ast.walk(tree))
    ]


def checks_of_class(tree: ast.Module, room: str) -> Iterator[int]:
    """The lines of each `isinstance` with a class that is imported from a room."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    known = {
        alias.asname or alias.name
        for node in imports
        if (node.module or "").startswith(f"bertcli.{room}.")
        for alias in node.names
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        classes = ast.walk(call.args[1]) if ast.unparse(call.func) == "isinstance" else ()
        if any(isinstance(each, ast.Name) and each.id in known for each in classes):
            yield call.lineno


def test_few_files_outside_their_room_name_a_task_or_an_objective() -> None:
    assert quoting(TASKS, "tasks") == []
    assert len(found := quoting(NAMES, "objectives")) <= 1, found


def test_few_places_outside_their_room_ask_what_kind_a_task_an_example_or_an_answer_is() -> None:
    found = [
        f"{file}:{line}"
        for file, tree in files()
        if not file.startswith("tasks/")
        for line in checks_of_class(tree, "tasks")
    ]
    assert len(found) <= 3, found


def test_a_check_of_class_is_found() -> None:
    code = "from bertcli.tasks.examples import A, B as C\nisinstance(x, C | int)\nisinstance(A, str)"
    assert list(checks_of_class(ast.parse(code), "tasks")) == [2]
