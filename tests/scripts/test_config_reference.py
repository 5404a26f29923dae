"""docs/configuration.md is what the configs say today."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "config_reference.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("config_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(script: ModuleType) -> None:
    now = script.page()
    assert script.PAGE.read_text(encoding="utf-8") == now, "run python scripts/config_reference.py"


def test_keys_have_values_defaults_and_meanings(script: ModuleType) -> None:
    rows = script.page().split("\n")
    assert any(row.startswith("| `output_dir` | text | **required** | The folder") for row in rows)
    assert any(
        row.startswith("| `data.max_length` | integer, 16 to 16,777,216 | `128` | Tokens in a row")
        for row in rows
    )
    given = "integer, 1 to 16,777,216; a list of two of these; auto"
    assert any(row.startswith(f"| `training.batch_size` | {given} | `auto` | Rows") for row in rows)
    assert any(row.startswith("| `task.type` | classification, regression") for row in rows)
