import pytest
import torch

from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel


@pytest.fixture
def odd() -> Architecture:
    """Every axis its own size, so that no transposition goes unseen."""
    return Architecture(
        vocab_size=37, hidden=15, layers=2, heads=5, feed_forward=23, max_positions=19, init_std=0.5
    )


@pytest.fixture
def model(odd: Architecture) -> PretrainingModel:
    torch.manual_seed(0)
    return PretrainingModel(odd).eval()
