"""Imports flow one way: a file may import only from its own layer and those above it."""

from __future__ import annotations

import ast
from pathlib import Path

import bertcli

PACKAGE = Path(bertcli.__file__).parent
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "terminal": set(),
    "files": {"errors"},
    "owned": {"errors", "files"},
    "processes": {"errors"},
    "exhausted": {"errors"},
    "samples": set(),
    "families": set(),
    "config": {"errors", "files", "owned", "families"},
    "text": {"errors", "files", "owned", "families", "config", "samples"},
    "store": {"errors", "terminal", "files", "owned", "processes", "families", "config", "text"},
    "examples": {"errors", "terminal", "files", "config", "text", "samples"},
    "metrics": {"errors", "text"},
    "data": {"errors", "terminal", "config", "text", "store"},
    "model": {"errors", "families", "config"},
    "distributed": {"errors"},
    "memory": {"config", "families", "model"},
    "hardware": {"errors", "model", "memory"},
    "tasks": {"errors", "config", "text", "examples", "metrics", "data", "model"},
    "hf": {"errors", "files", "owned", "families", "config", "text", "model", "terminal"},
    "inference": {
        *(
            "errors",
            "files",
            "config",
            "text",
            "examples",
            "data",
            "model",
            "hardware",
            "tasks",
            "hf",
            "terminal",
        ),
    },
    "export": {
        *("errors", "files", "owned", "terminal", "families", "config", "text", "examples", "data", "model"),
        *("store", "tasks", "hf", "inference"),
    },
    "engine": {
        *("errors", "config", "store", "data", "model", "distributed", "memory", "hardware", "tasks"),
    },
    "checkpoints": {"errors", "files", "owned", "config", "distributed", "engine", "terminal"},
    "evaluation": {
        *("files", "owned"),
        *("errors", "config", "text", "store", "examples", "metrics", "data", "model", "distributed"),
        *("owned", "samples", "hardware", "tasks", "hf", "inference", "engine", "checkpoints", "terminal"),
    },
    "cards": {"families", "config", "text", "store", "evaluation", "model", "tasks"},
    "runs": {
        *("families", "errors", "files", "owned", "config", "text", "store", "examples", "metrics"),
        *("samples", "terminal", "data", "model", "distributed", "memory", "hardware", "tasks", "hf"),
        *("inference", "engine", "checkpoints", "evaluation", "cards"),
    },
    "checks": {"errors", "processes", "config", "text", "store", "examples", "data", "tasks", "hf", "runs"},
    "report": {
        *("errors", "files", "owned", "terminal", "config", "text", "store", "examples", "metrics", "data"),
        *("model", "hardware", "tasks", "hf", "inference", "checkpoints", "evaluation", "cards", "runs"),
        "checks",
    },
    "measure": {
        *("errors", "config", "text", "store", "examples", "data", "model", "memory", "hardware"),
        *(
            "tasks",
            "hf",
            "inference",
            "engine",
            "checkpoints",
            "evaluation",
            "runs",
            "distributed",
            "terminal",
        ),
    },
    "start": {
        *("errors", "files", "samples", "config", "text", "store", "examples", "model", "hardware", "hf"),
        *("runs", "checks", "measure"),
    },
    "commands": {
        *("families", "errors", "files", "owned", "config", "text", "store", "examples", "metrics"),
        *("data", "model", "distributed", "hardware", "tasks", "hf", "inference", "engine", "checks"),
        *("memory", "measure", "start", "terminal", "checkpoints", "evaluation", "runs", "report"),
        *("export", "training"),
    },
    "training": {
        *("errors", "config", "distributed", "evaluation", "report", "runs", "store", "terminal"),
    },
    "calls": {"errors", "exhausted", "terminal"},
    "api": {"calls", "distributed", "errors", "examples", "hf", "inference", "training"},
    "cli": {"errors", "exhausted", "terminal"},
    "__main__": {"cli", "terminal"},
    "__init__": {"api", "errors"},
}
"""Layer -> the layers it may import from, besides itself."""
NO_TORCH = (
    *("errors", "families", "processes", "samples", "config", "text", "store", "examples", "metrics"),
    "cli",
)


def imported_modules(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(node.module or "")
    return names


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_imports_flow_one_way() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        layer = layer_of(path)
        for name in imported_modules(path):
            parts = name.split(".")
            if parts[0] == "bertcli" and len(parts) > 1 and parts[1] not in LAYERS[layer] | {layer}:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_text_and_config_know_nothing_of_torch() -> None:
    wrong = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if layer_of(path) in NO_TORCH
        and any(name.split(".")[0] == "torch" for name in imported_modules(path))
    ]
    assert wrong == []


def test_only_tests_know_the_packages_that_they_compare_with() -> None:
    packages = {"transformers", "sentence_transformers", "google", "sklearn", "scipy"}
    users = [
        path
        for path in PACKAGE.rglob("*.py")
        if packages & {name.split(".")[0] for name in imported_modules(path)}
    ]
    assert users == []
