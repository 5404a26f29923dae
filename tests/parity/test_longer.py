"""Models for longer rows: at the old and at the new length, the numbers are those of transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bertcli.folders.model_folder import load_model_folder, save_model_folder  # noqa: E402
from bertcli.model.architecture import Architecture  # noqa: E402
from tests.parity.families import CASES, FIRST, USUAL, V1, V3, Case, for_transformers, rows, saved  # noqa: E402

OLD, NEW = USUAL["max_position_embeddings"], 330
MORE = (
    Case("roberta", {"type_vocab_size": 1, "pad_token_id": 3, "max_position_embeddings": OLD + 4}),
    Case("deberta-v2", {**V3, "position_biased_input": True}),
    Case("deberta-v2", {**V3, "position_buckets": -1, "share_att_key": False}),
    Case("deberta", {**V1, "position_biased_input": True}),
)
"""Positions with an offset, and relative ones beside a table and without buckets."""


def longer(sizes: Architecture) -> Architecture:
    return sizes.with_positions(NEW)


@pytest.mark.parametrize("case", [*FIRST, *MORE], ids=str)
@torch.no_grad()
def test_both_lengths_have_the_numbers_of_transformers(tmp_path: Path, case: Case) -> None:
    theirs = saved(tmp_path / "old", case, "masked-lm")
    loaded = load_model_folder(tmp_path / "old", pairs=False, adapt=longer)
    save_model_folder(tmp_path / "new", loaded.model, loaded.tokenizer)
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "new").eval()
    usable = min(OLD, load_model_folder(tmp_path / "old").model.architecture.usable_positions)
    for lengths, models in (((usable, 9), (theirs, again)), ((NEW, 200, 7), (again,))):
        inputs = rows(lengths, case)
        got = loaded.model.eval()(*inputs).mlm_logits_MV.unflatten(0, inputs[0].shape)
        real = slice(None) if inputs[2] is None else inputs[2]
        for model in models:
            want = model(**for_transformers(case, inputs)).logits
            scale = max(1.0, float(want.abs().max()))
            torch.testing.assert_close(got[real], want[real], rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("case", [CASES[0], MORE[0]], ids=str)
def test_a_table_is_repeated_after_the_rows_that_no_token_has(tmp_path: Path, case: Case) -> None:
    saved(tmp_path, case, "masked-lm")
    old, new = (
        load_model_folder(tmp_path, pairs=False, adapt=adapt).model.body.embeddings
        for adapt in (None, longer)
    )
    assert old.position is not None
    assert new.position is not None
    offset, before, after = old.position_offset, old.position.weight, new.position.weight
    assert len(after) == offset + NEW
    assert torch.equal(after[: len(before)], before)
    assert torch.equal(after[offset + 150 : offset + 300], before[offset:])
    assert torch.equal(after[offset + 300 :], before[offset : offset + 30])


def test_another_rotary_base_is_that_of_transformers(tmp_path: Path) -> None:
    case = next(each for each in FIRST if each.model_type == "modernbert")
    saved(tmp_path / "old", case, "masked-lm")
    loaded = load_model_folder(
        tmp_path / "old", pairs=False, adapt=lambda sizes: longer(sizes).with_rotary_base(500.0)
    )
    save_model_folder(tmp_path / "new", loaded.model, loaded.tokenizer)
    keys = json.loads((tmp_path / "new" / "config.json").read_text())
    assert keys["rope_parameters"]["full_attention"]["rope_theta"] == keys["global_rope_theta"] == 500.0
    assert keys["rope_parameters"]["sliding_attention"]["rope_theta"] == keys["local_rope_theta"] == 10_000.0
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "new").eval()
    inputs = rows((NEW,), case)
    with torch.inference_mode():
        got = loaded.model.eval()(*inputs).mlm_logits_MV
        want = again(**for_transformers(case, inputs)).logits[0]
        torch.testing.assert_close(got, want, rtol=0, atol=1e-5 * float(want.abs().max()))
