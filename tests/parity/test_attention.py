"""Attention probabilities of every family against transformers' own (`output_attentions`, eager)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bertcli.folders.model_folder import load_encoder_folder  # noqa: E402
from bertcli.inference.attention import attention_of  # noqa: E402
from bertcli.tasks.row_words import ReadRow  # noqa: E402
from bertcli.tokenizer.frame import Row  # noqa: E402
from tests.parity.families import CASES, Case, class_of, for_transformers, rows, saved  # noqa: E402


@pytest.mark.parametrize("length", [11, 140], ids=["short", "longer than any window"])
@pytest.mark.parametrize("case", CASES, ids=str)
@torch.no_grad()
def test_attention_is_that_of_transformers(tmp_path: Path, case: Case, length: int) -> None:
    saved(tmp_path, case, "encoder")
    theirs = class_of(case, "encoder").from_pretrained(tmp_path, attn_implementation="eager").eval()
    ids_BT, segments_BT, _ = rows((length,), case)
    named = for_transformers(case, (ids_BT, segments_BT, None))
    want = torch.cat(theirs(**named, output_attentions=True).attentions)
    model, tokenizer = load_encoder_folder(tmp_path)
    row = Row(ids_BT[0].tolist(), second_starts=int((segments_BT == 0).sum()))
    found = attention_of(model.body, tokenizer, ReadRow(row, (), 0)).probabilities_LNTT
    assert want.max() > 4 / length  # far from uniform
    torch.testing.assert_close(found, want)
