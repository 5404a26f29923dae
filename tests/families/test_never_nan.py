"""No family makes NaN of padding: a long tail of it, rows of one token, windows and rows of padding alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

pytest.importorskip("transformers")

from bertcli.families.family import HeadKind
from bertcli.folders.config_file import read_architecture
from bertcli.model.seam import plain_path
from bertcli.model.task_models import build_task_model
from tests.parity.families import FIRST, Case, their_config

LENGTHS = torch.tensor([3, 1, 0, 90])[:, None]


@pytest.mark.parametrize(
    ("kind", "half", "plain"),
    [
        ("sequences", False, False),
        ("tokens", True, False),
        ("tokens", False, True),
        ("sequences", True, True),
    ],
    ids=["fp32-fast", "bf16-fast", "fp32-plain", "bf16-plain"],
)
@pytest.mark.parametrize("case", FIRST, ids=str)
def test_padding_never_makes_nan(tmp_path: Path, case: Case, kind: HeadKind, half: bool, plain: bool) -> None:
    their_config(case).save_pretrained(tmp_path)
    torch.manual_seed(0)
    model = build_task_model(kind, read_architecture(tmp_path / "config.json"), 3)
    mask_BT = torch.arange(140) < LENGTHS
    ids_BT = torch.randint(5, 30, mask_BT.shape) * mask_BT

    def loss(rows: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = model(ids_BT[rows], torch.zeros_like(ids_BT[rows]), mask_BT[rows])
        assert logits.isfinite().all()
        return F.cross_entropy(logits.float().flatten(0, -2), torch.zeros(logits.shape[:-1]).long().flatten())

    def run(rows: Tensor) -> None:
        loss(rows).backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is None or parameter.grad.isfinite().all(), name
        with torch.no_grad():
            loss(rows)

    for rows in (torch.arange(4), torch.tensor([2]), torch.tensor([1])):
        if plain:
            with plain_path():
                run(rows)
        else:
            run(rows)
