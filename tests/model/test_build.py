"""A model without values."""

from __future__ import annotations

import torch

from bertcli.model.architecture import Architecture
from bertcli.model.init import sizes_alone
from bertcli.model.pretraining import PretrainingModel


def test_a_model_of_its_sizes_alone_draws_nothing(odd: Architecture) -> None:
    before = torch.get_rng_state()
    with sizes_alone():
        model = PretrainingModel(odd)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.is_meta for parameter in model.parameters())
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    assert shapes == {name: parameter.shape for name, parameter in PretrainingModel(odd).named_parameters()}
