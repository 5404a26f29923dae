"""Imports flow one way: no file imports itself by way of others; what needs no torch never imports it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.shape import PACKAGE, trees

ROOMS = {
    *("advice", "batches", "cli", "config", "corpus", "families", "folders", "inference", "model"),
    *("objectives", "reports", "samples", "system", "tasks", "tokenizer", "training"),
}
LOOSE = {"__init__", "__main__", "api"}
NO_TORCH = ("config", "corpus", "families", "samples", "tokenizer", "cli")
"""Rooms that never import torch when they are imported."""
NO_TORCH_FILES = ("advice.check.pretraining", "tasks.files", "training.recipe")


def name_of(path: Path) -> str:
    """`bertcli/model/layer.py` -> `bertcli.model.layer`."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(nodes: Iterable[ast.AST], files: Iterable[str]) -> set[str]:
    """The names of what these statements import; of `from a import b` the module `a.b`, if there is one."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                names.add(name if name in files else node.module or "")
    return names


def graph() -> dict[str, set[str]]:
    """File -> what it imports, also inside functions and for types alone."""
    return {name: imported(ast.walk(trees()[path]), FILES) for name, path in FILES.items()}


def find_circle(imports: Mapping[str, set[str]]) -> list[str]:
    """The names on a way from a file back to itself; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def reached(start: str) -> set[str]:
    """What is imported with a file: by its own statements, by those of what they import, and so on."""
    seen, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            if name in FILES:
                waiting += imported(trees()[FILES[name]].body, FILES)
    return seen


def test_no_file_imports_itself_by_way_of_others() -> None:
    imports = graph()
    assert find_circle({name: names & FILES.keys() for name, names in imports.items()}) == []


def test_a_circle_is_found() -> None:
    assert set(find_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}


def test_folders_are_few_and_nothing_lies_loose() -> None:
    assert {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))} == ROOMS
    assert {path.stem for path in PACKAGE.glob("*.py")} == LOOSE
    assert len(FILES) <= 291


def test_text_and_config_know_nothing_of_torch() -> None:
    names = [name for name in FILES if name.split(".")[1:2] and name.split(".")[1] in NO_TORCH]
    names += [f"bertcli.{name}" for name in NO_TORCH_FILES]
    assert [name for name in names if any(each.split(".")[0] == "torch" for each in reached(name))] == []
    assert "torch" in reached("bertcli.model.layer")


def test_only_tests_know_the_packages_that_they_compare_with() -> None:
    packages = {"transformers", "sentence_transformers", "google", "sklearn", "scipy"}
    users = [name for name, names in graph().items() if packages & {each.split(".")[0] for each in names}]
    assert users == []


WITHOUT_UNIX = """
import importlib, os, signal, sys
import filelock, huggingface_hub, tokenizers, torch.utils.checkpoint, torch.utils.data, tqdm, typer
for name in ("resource", "fcntl", "termios", "pwd"):
    sys.modules[name] = None
for name in ("SIGHUP", "SIGUSR1", "SIGPIPE", "SIGALRM", "SIGKILL"):
    delattr(signal, name)
del os.register_at_fork
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
"""The program imports modules where Python lacks what Windows lacks; other packages are imported before."""


def test_all_files_can_be_imported_without_what_windows_lacks() -> None:
    names = [name for name in FILES if not name.endswith("__main__")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
