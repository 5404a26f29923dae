"""What is particular to DeBERTa's folders: the two forms of the MLM head, and parts that no class reads."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

transformers = pytest.importorskip("transformers")

from bertcli.folders.convert import convert  # noqa: E402
from bertcli.folders.model_folder import load_model_folder  # noqa: E402
from bertcli.model.seam import plain_path  # noqa: E402
from tests.folders.folders import rewrite  # noqa: E402
from tests.parity.families import FIRST, Case, class_of, for_transformers, rows, saved  # noqa: E402

CASES = pytest.mark.parametrize(
    "case", [case for case in FIRST if "deberta" in case.model_type], ids=lambda case: case.model_type
)


@CASES
@torch.no_grad()
def test_the_head_of_transformers_default_becomes_the_published_one(tmp_path: Path, case: Case) -> None:
    theirs = saved(tmp_path / "legacy", case, "masked-lm", legacy=True)
    before = load_file(tmp_path / "legacy" / "model.safetensors")
    assert "cls.predictions.transform.dense.weight" in before
    convert(tmp_path / "legacy", tmp_path / "ours", None)
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["legacy"] is False
    after = load_file(tmp_path / "ours" / "model.safetensors")
    heads = {name for name in after if not name.startswith("deberta.")}
    parts = "dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias", "bias"
    assert heads == {f"lm_predictions.lm_head.{part}" for part in parts}
    again, info = class_of(case, "masked-lm").from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    named = for_transformers(case, rows((13, 4, 1), case))
    assert torch.equal(again.eval()(**named).logits, theirs(**named).logits)


@CASES
def test_parts_that_transformers_does_not_read_are_left_aside(tmp_path: Path, case: Case) -> None:
    saved(tmp_path, case, "masked-lm")
    unread = {
        "deberta.embeddings.position_embeddings.weight": torch.randn(150, 24),
        "mask_predictions.dense.weight": torch.randn(24, 24),
        "mask_predictions.LayerNorm.weight": torch.randn(24),
        "mask_predictions.classifier.bias": torch.randn(1),
    }
    rewrite(tmp_path, lambda weights: weights | unread)
    report = load_model_folder(tmp_path, pairs=False).report
    assert set(report.left_aside) == set(report.dropped()) == set(unread)


class OtherQueries(nn.Module):
    """A fused projection of version 1, whose queries are of other states."""

    def __init__(self, fused: nn.Module, queries: Tensor, heads: int) -> None:
        super().__init__()
        self.fused, self.queries, self.heads = fused, queries, heads

    def forward(self, hidden: Tensor) -> Tensor:
        own, other = (self.fused(each).unflatten(-1, (self.heads, 3, -1)) for each in (hidden, self.queries))
        return torch.cat([other[..., :1, :], own[..., 1:, :]], dim=-2).flatten(-3)


def read_by(encoder: Any, hidden: Tensor, queries: Tensor, mask: Tensor) -> Tensor:
    """transformers' last layer with queries of their own, which its version 1 takes but cannot compute."""
    layer = encoder.layer[-1]
    attention = layer.attention
    given: dict[str, Any] = {
        "query_states": queries,
        "relative_pos": encoder.get_rel_pos(hidden),
        "rel_embeddings": encoder.get_rel_embedding(),
    }
    own = getattr(attention.self, "in_proj", None)
    if own is not None:
        attention.self.in_proj = OtherQueries(own, queries, attention.self.num_attention_heads)
        del given["query_states"]
    context, _ = attention.self(hidden, encoder.get_attention_mask(mask), **given)
    if own is not None:
        attention.self.in_proj = own
    attended = attention.output(context, queries)
    return layer.output(layer.intermediate(attended), attended)


@CASES
@pytest.mark.parametrize("path", ["fast", "plain"])
@torch.no_grad()
def test_the_mask_decoder_is_the_last_layer_twice_with_absolute_positions(
    tmp_path: Path, case: Case, path: str
) -> None:
    theirs = saved(tmp_path, case, "masked-lm")
    table = torch.randn(theirs.config.max_position_embeddings, theirs.config.hidden_size)
    rewrite(tmp_path, lambda weights: weights | {"deberta.embeddings.position_embeddings.weight": table})
    model = load_model_folder(tmp_path, pairs=False, mask_decoder=True).model.eval()
    batch = rows((13, 4, 1), case)
    named = for_transformers(case, batch)
    encoder, embeddings = theirs.deberta.encoder, theirs.deberta.embeddings
    hidden = theirs.deberta(**named, output_hidden_states=True).hidden_states[-2]
    queries = hidden + table[: hidden.shape[1]]
    for _ in range(2):
        queries = read_by(encoder, hidden, queries, mask=named["attention_mask"])
    expected = theirs.lm_predictions(queries, embeddings.word_embeddings).flatten(0, 1)
    real = named["attention_mask"].flatten().nonzero().squeeze(1)
    with plain_path() if path == "plain" else nullcontext():
        everywhere = model(*batch).mlm_logits_MV
        some = model(*batch, real[1::3]).mlm_logits_MV
    torch.testing.assert_close(everywhere[real], expected[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(some, expected[real[1::3]], atol=1e-5, rtol=1e-5)


@CASES
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_no_value_is_nan_on_either_path(tmp_path: Path, case: Case, precision: torch.dtype) -> None:
    saved(tmp_path, case, "masked-lm")
    model = load_model_folder(tmp_path, pairs=False).model.train()
    inputs = rows((140, 1, 9), case)
    for off in ((), ("disentangled",)):
        with plain_path(*off) if off else torch.enable_grad():
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
                words = model(*inputs, torch.tensor([0, 140, 281])).mlm_logits_MV
            words.float().square().sum().backward()
        assert words.isfinite().all()
        assert all(torch.as_tensor(each.grad).isfinite().all() for each in model.parameters())
