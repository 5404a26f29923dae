"""What is compiled, and for which runs."""

from __future__ import annotations

import pytest
import torch

from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import Architecture
from bertcli.training.wrapping import is_worth_compiling, launch_seconds
from tests.decided import model_config

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
