"""docs/commands.md is what the command line says today."""

from __future__ import annotations

import runpy
from pathlib import Path

from bertcli.cli.main import COMMANDS

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "command_reference.py"))


def test_the_page_is_current() -> None:
    now = SCRIPT["page"]()
    assert SCRIPT["PAGE"].read_text(encoding="utf-8") == now, "run python scripts/command_reference.py"


def test_each_command_has_its_options_and_an_example() -> None:
    page = SCRIPT["page"]()
    assert all(f"\n## `bertcli {name}`\n" in page for name in COMMANDS)
    assert "\n### `bertcli tokenizer encode`\n" in page
    assert "\n| `--resume` | Continue exactly where the run stopped. |\n" in page
    assert "Example: `bertcli pretrain quickstart --set training.steps=200`\n" in page
