"""A few of the kills and damages that the scripts do in their dozens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts" / "check"


@pytest.mark.parametrize(
    ("script", "options", "verdict"),
    [
        ("kills.py", ("--kills", "1"), "1 of 1 resumed to the undisturbed run's rows, weights and"),
        ("damage.py", ("--damages", "24", "--resumes", "1"), "24 of 24 recognized and passed over"),
    ],
)
def test_the_first_few_end_well(script: str, options: tuple[str, ...], verdict: str) -> None:
    command = [sys.executable, str(SCRIPTS / script), *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert verdict in result.stdout
