import math
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from bertcli.folders.config_file import new_architecture
from bertcli.model.init import expected_first_mlm_loss
from tests.decided import model_config

SCRIPT = Path(__file__).parents[2] / "scripts" / "check" / "first_losses.py"


@pytest.mark.parametrize("preset", ["tiny", "mini"])
@pytest.mark.parametrize("vocab_size", [8192, 30522])
def test_a_fresh_model_starts_where_its_initial_values_say(preset, vocab_size):
    sizes = new_architecture(model_config(preset=preset), vocab_size)
    mlm, nsp = runpy.run_path(str(SCRIPT))["first_losses"](sizes, rows=8)
    assert mlm == pytest.approx(expected_first_mlm_loss(sizes), abs=0.05)
    assert nsp == pytest.approx(math.log(2), abs=0.15)


def test_the_script_prints_a_line_per_preset():
    command = [sys.executable, str(SCRIPT), "--presets", "tiny", "--vocab-size", "500"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tiny    mlm 6.3")
    assert done.stdout.endswith("ok\n")
