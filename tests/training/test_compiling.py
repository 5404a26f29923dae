"""What is compiled, and for which runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import Architecture
from bertcli.training.wrapping import is_worth_compiling, launch_seconds
from tests.decided import model_config
from tests.finetunes import spam_config, spam_files
from tests.small_runs import small_config, write_config

GPU, CPU = torch.device("cuda"), torch.device("cpu")
BASE = new_architecture(model_config(preset="base"), 30522)
TINY = new_architecture(model_config(preset="tiny"), 2048)


@pytest.mark.parametrize(
    ("sizes", "tokens", "device", "worth"),
    [
        (BASE, 1e9, GPU, True),
        (BASE, 1e6, GPU, False),  # over in seconds
        (TINY, 1e9, GPU, True),  # its kernels take long to start, not to run
        (TINY, 3200 * 32 * 64, GPU, False),
        (BASE, 1e9, CPU, False),
    ],
)
def test_a_run_is_compiled_where_it_is_long_and_on_a_gpu(
    sizes: Architecture, tokens: float, device: torch.device, worth: bool
) -> None:
    assert is_worth_compiling(sizes, tokens, 16 * 128, 128, 0.15, device) is worth


def test_more_layers_start_more_kernels() -> None:
    assert launch_seconds(12) > 2 * launch_seconds(4)


def test_no_run_waits_for_torchs_compiler(corpus: Path, tmp_path: Path) -> None:
    """The compiler's import takes as long as that of torch."""
    pretraining = write_config(tmp_path / "pretrain.yaml", small_config(corpus, tmp_path / "pretrained"))
    finetuning = write_config(
        tmp_path / "finetune.yaml", spam_config(spam_files(tmp_path), training={"epochs": 0.1})
    )
    program = (
        "import sys, bertcli\n"
        "bertcli.pretrain(sys.argv[1])\n"
        "bertcli.finetune(sys.argv[2])\n"
        "heavy = {'sympy', 'torch._dynamo'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    command = [sys.executable, "-c", program, pretraining, finetuning]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
