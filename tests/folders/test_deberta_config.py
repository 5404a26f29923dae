"""Every key of DeBERTa's `config.json` is obeyed, or refused by its name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bertcli.folders.config_file import config_json, read_architecture
from bertcli.model.architecture import Architecture, Convolution, Relative
from bertcli.system.errors import UserError
from tests.folders.folders import ODD, tiny_tokenizer

PUBLISHED = {
    "model_type": "deberta-v2",
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "layer_norm_eps": 1e-7,
    "max_relative_positions": -1,
    "position_biased_input": False,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 0,
    "vocab_size": 128100,
}
"""Of microsoft/deberta-v3-base."""
V3 = Relative(
    content_to_position=True,
    position_to_content=True,
    max_distance=512,
    buckets=256,
    shared_projections=True,
    normalized_table=True,
)


def read(tmp_path: Path, **changes: Any) -> Architecture:
    config = PUBLISHED | changes
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in config.items() if value != "absent"}))
    return read_architecture(path)


def test_the_published_version_3_is_read(tmp_path: Path) -> None:
    got = read(tmp_path)
    assert (got.relative, got.convolution, got.position_table, got.num_segments) == (V3, None, False, 0)
    assert (got.layer_norm_eps, got.head_dropout, got.pooler_dropout) == (1e-7, 0.1, 0.0)


def test_the_published_version_2_is_read(tmp_path: Path) -> None:
    got = read(
        tmp_path,
        **{"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 64},
        **{"pooler_hidden_size": 768, "pooler_dropout": 0, "pooler_hidden_act": "gelu"},
    )
    assert (got.relative, got.convolution) == (V3, Convolution(3, 1, "gelu"))


def test_version_1_has_no_buckets_and_no_bias_of_keys(tmp_path: Path) -> None:
    """Also if the file has keys of version 2, which transformers' version 1 does not read."""
    got = read(tmp_path, model_type="deberta", padding_idx=0, conv_kernel_size=3)
    assert got.relative == Relative(True, True, max_distance=512, key_bias=False)
    assert got.convolution is None


@pytest.mark.parametrize(
    ("changes", "relative"),
    [
        ({"pos_att_type": ["c2p"]}, {"position_to_content": False}),
        ({"pos_att_type": "P2C"}, {"content_to_position": False}),
        ({"pos_att_type": "c2p | p2c"}, {}),
        ({"max_relative_positions": 300}, {"max_distance": 300}),
        ({"position_buckets": -1}, {"buckets": None}),
        ({"position_buckets": "absent"}, {"buckets": None}),
        ({"position_buckets": 1021}, {"buckets": 1021}),
        ({"share_att_key": "absent"}, {"shared_projections": False}),
        ({"norm_rel_ebd": "none"}, {"normalized_table": False}),
        ({"norm_rel_ebd": "absent"}, {"normalized_table": False}),
    ],
)
def test_every_key_of_the_positions_is_obeyed(tmp_path: Path, changes: Any, relative: Any) -> None:
    assert read(tmp_path, **changes).relative == replace(V3, **relative)


def test_other_keys_are_obeyed(tmp_path: Path) -> None:
    got = read(
        tmp_path,
        **{"position_biased_input": "absent", "type_vocab_size": 2, "cls_dropout": 0.3},
        **{"pooler_dropout": 0.2, "conv_kernel_size": 5, "conv_groups": 4},
    )
    assert (got.position_table, got.num_segments, got.head_dropout) == (True, 2, 0.3)
    assert (got.pooler_dropout, got.convolution) == (0.2, Convolution(5, 4, "tanh"))


@pytest.mark.parametrize(
    "relative",
    [
        V3,
        replace(V3, max_distance=19, buckets=None),
        replace(V3, content_to_position=False, shared_projections=False, normalized_table=False),
    ],
)
@pytest.mark.parametrize("convolution", [None, Convolution(5, 3, "tanh")])
def test_what_is_written_is_read_again(
    tmp_path: Path, relative: Relative, convolution: Convolution | None
) -> None:
    path = tmp_path / "config.json"
    for family in ("deberta-v2", "deberta"):
        sizes = replace(ODD, family=family, relative=relative, convolution=convolution, position_table=False)
        if family == "deberta":
            plain = Relative(relative.content_to_position, True, relative.max_distance, key_bias=False)
            sizes = replace(sizes, relative=plain, convolution=None)
        path.write_text(config_json(sizes, "masked-lm", tiny_tokenizer()))
        assert read_architecture(path) == sizes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"relative_attention": False}, "relative_attention: False is not supported; expected True"),
        ({"relative_attention": "absent"}, "relative_attention: False is not supported; expected True"),
        ({"pos_att_type": "absent"}, "pos_att_type: None is not supported; expected c2p, p2c or p2c|c2p"),
        ({"pos_att_type": "c2p|p2p"}, "pos_att_type: ['c2p', 'p2p'] is not supported"),
        ({"pos_att_type": []}, "pos_att_type: [] is not supported"),
        ({"pos_att_type": ["c2p", "c2p"]}, "pos_att_type: ['c2p', 'c2p'] is not supported"),
        ({"embedding_size": 128}, "embedding_size: 128 is not supported; expected 768"),
        ({"pooler_hidden_size": 128}, "pooler_hidden_size: 128 is not supported; expected 768"),
        ({"attention_head_size": 32}, "attention_head_size: 32 is not supported; expected 64"),
        ({"position_buckets": 1}, "position_buckets: 1 is not below 1022, and not -1 for none"),
        ({"position_buckets": 1022}, "position_buckets: 1022 is not below 1022"),
        ({"position_buckets": 2.5}, "position_buckets: 2.5 is not an integer"),
        ({"norm_rel_ebd": "rms"}, "norm_rel_ebd: 'rms' is not supported; expected 'layer_norm'"),
        ({"share_att_key": "yes"}, "share_att_key: 'yes' is not supported; expected False"),
        ({"position_biased_input": 3}, "position_biased_input: 3 is not supported; expected True"),
        ({"conv_kernel_size": 4}, "conv_kernel_size: 4 is even"),
        ({"conv_kernel_size": 3, "conv_groups": 5}, "conv_groups: 5 does not divide hidden_size 768"),
        ({"conv_kernel_size": 3, "conv_act": "relu"}, "conv_act: 'relu' is not supported; expected 'gelu'"),
        ({"pooler_hidden_act": "tanh"}, "pooler_hidden_act: 'tanh' is not a DeBERTa-v2; expected 'gelu'"),
        ({"hidden_act": "relu"}, "hidden_act: 'relu' is not a DeBERTa-v2; expected 'gelu'"),
        ({"model_type": "deberta", "talking_head": True}, "talking_head: True is not a DeBERTa"),
        ({"max_relative_positions": "far"}, "max_relative_positions: 'far' is not an integer"),
        ({"type_vocab_size": None}, "type_vocab_size: None is not an integer"),
        ({"type_vocab_size": 2**63}, "type_vocab_size: 9223372036854775808 is too large; at most 16,777,216"),
        ({"hidden_size": "absent"}, "hidden_size: missing"),
        ({"num_attention_heads": 0}, "num_attention_heads: 0 is not an integer above 0"),
    ],
)
def test_a_config_that_asks_for_something_else_is_refused_by_name(
    tmp_path: Path, changes: Any, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, **changes)
    assert message in str(caught.value)
