"""A model of each family as ONNX has the outputs of transformers' class, whatever the size of the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch

from bertcli.families.registry import FAMILIES
from bertcli.folders.onnx_folder import Exported, export_onnx
from bertcli.folders.onnx_source import read_source
from tests.folders.folders import SETTINGS
from tests.parity.families import FIRST, Case, for_transformers, rows, saved, saved_task

BY_NAME = {case.model_type: case for case in FIRST}
SMALL: dict[str, dict[str, Any]] = {
    "modernbert": {
        "num_hidden_layers": 2,
        "local_attention": 6,
        "layer_types": ["full_attention", "sliding_attention"],
    },
    "albert": {"num_hidden_layers": 2},
}
"""A layer is enough, but for those that differ from layer to layer, or share their weights."""
KINDS = {
    "distilbert": ("encoder", ["last_hidden_state"]),
    "roberta": ("masked-lm", ["logits"]),
    "electra": ("discriminator", ["logits"]),
    "albert": ("choices", ["logits"]),
    "deberta": ("regression", ["logits"]),
    "deberta-v2": ("questions", ["start_logits", "end_logits"]),
    "modernbert": ("tokens", ["logits"]),
}
"""A head for each; `scripts/check/onnx_export.py` takes all heads of all families."""
LENGTHS = ((60,), (1, 1, 1), (23, 4, 30, 9))


def small(name: str) -> Case:
    case = BY_NAME[name]
    return replace(case, keys={**case.keys, **SMALL.get(name, {"num_hidden_layers": 1})})


@pytest.mark.parametrize("name", KINDS)
def test_its_outputs_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    (kind, outputs), case = KINDS[name], small(name)
    theirs = (saved_task if kind in SETTINGS else saved)(tmp_path / "model", case, kind)
    done = export(tmp_path / "model", tmp_path / "onnx")
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "onnx" / "model.onnx")
    names = [each.name for each in session.get_inputs()]
    assert ("token_type_ids" in names) == (name in ("electra", "albert"))
    assert [each.name for each in session.get_outputs()] == list(done.outputs) == outputs
    for lengths in LENGTHS:
        given = for_transformers(case, rows(lengths, case))
        if kind == "choices":
            given = {name: torch.stack([each, each.flip(0)]) for name, each in given.items()}
        feeds = {name: given[name].numpy() for name in names}
        expected = theirs(**given)
        real = given["attention_mask"].bool()
        for output, got in zip(outputs, map(torch.from_numpy, session.run(None, feeds)), strict=True):
            want = expected[output] if output in expected else expected[0]
            assert got.shape == want.shape
            if want.shape[:2] == real.shape and kind != "choices":  # a value for each token
                want, got = want[real], got[real]
            torch.testing.assert_close(got, want, atol=1e-4, rtol=0)


def export(model: Path, folder: Path) -> Exported:
    return export_onnx(read_source(model, encoder_alone=False), folder, sample=None)


def test_each_family_is_exported_here_or_in_the_tests_of_the_command() -> None:
    same = {"xlm-roberta": "roberta", "camembert": "roberta", "bert": "bert"}
    assert {same.get(name, name) for name in FAMILIES} == {*KINDS, "bert"}
