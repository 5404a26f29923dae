"""Unusual keys in every family's `config.json`: obeyed, with transformers' numbers, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")

from bertcli.folders.config_file import read_architecture  # noqa: E402
from bertcli.system.errors import UserError  # noqa: E402
from tests.parity.families import Case, saved, their_config  # noqa: E402
from tests.parity.test_families import (  # noqa: E402
    test_hidden_states_and_words_are_those_of_transformers as compare,
)

ROPE = {"rope_type": "default"}
OBEYED = [
    Case("roberta", {"type_vocab_size": 2}),
    Case("roberta", {"type_vocab_size": 3, "pad_token_id": 7, "max_position_embeddings": 158}),
    Case("distilbert", {"hidden_dim": 40, "sinusoidal_pos_embds": True}),
    Case("electra", {"embedding_size": 24, "type_vocab_size": 1}),
    Case("albert", {"embedding_size": 10, "hidden_act": "gelu_pytorch_tanh"}),
    Case("albert", {"embedding_size": 10, "num_hidden_groups": 3}),
    Case("modernbert", {"local_attention": 9, "global_attn_every_n_layers": 2}),
    Case("modernbert", {"global_rope_theta": 500.0, "local_rope_theta": 50.0, "local_attention": 16}),
    Case(
        "modernbert",
        {
            "rope_parameters": {
                "full_attention": {**ROPE, "rope_theta": 300.0},
                "sliding_attention": {**ROPE, "rope_theta": 30.0},
            },
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    Case("modernbert", {"position_embedding_type": "absolute", "norm_eps": 1e-3}),
]


@pytest.mark.parametrize("case", OBEYED, ids=str)
def test_an_unusual_key_is_obeyed(tmp_path: Path, case: Case) -> None:
    compare(tmp_path, case, (140, 131, 66))


def test_the_keys_of_older_files_are_read_without_the_newer_ones(tmp_path: Path) -> None:
    """As in the published ModernBERT: transformers itself writes both forms."""
    old = {"global_attn_every_n_layers": 2, "global_rope_theta": 500.0, "local_rope_theta": 50.0}
    saved(tmp_path, Case("modernbert", old), "masked-lm")
    config = json.loads((tmp_path / "config.json").read_text())
    newer = read_architecture(tmp_path / "config.json")
    for key in ("layer_types", "rope_parameters"):
        del config[key]
    (tmp_path / "config.json").write_text(json.dumps(config | old))
    assert read_architecture(tmp_path / "config.json") == newer
    assert newer.local_layers == (False, True, False)
    assert newer.rotary_bases == (500.0, 50.0)


REFUSED = [
    ("roberta", {"hidden_act": "relu"}, "hidden_act: 'relu' is not a RoBERTa; expected 'gelu'"),
    ("roberta", {"position_embedding_type": "relative_key"}, "position_embedding_type: 'relative_key'"),
    ("roberta", {"is_decoder": True}, "is_decoder: True is not a RoBERTa"),
    ("roberta", {"pad_token_id": None}, "pad_token_id: None is not a token id; positions begin after it"),
    ("roberta", {"max_position_embeddings": 1}, "max_position_embeddings: 1 leaves no position"),
    ("distilbert", {"activation": "relu"}, "activation: 'relu' is not a DistilBERT; expected 'gelu'"),
    ("distilbert", {"qa_dropout": 2}, "qa_dropout: 2 is not a number from 0 to below 1"),
    ("electra", {"embedding_size": 0}, "embedding_size: 0 is not an integer above 0"),
    ("electra", {"summary_type": "last"}, "summary_type: 'last' is not an ELECTRA; expected 'first'"),
    ("electra", {"summary_use_proj": False}, "summary_use_proj: False"),
    ("albert", {"inner_group_num": 2}, "inner_group_num: 2 is not an ALBERT; expected 1"),
    (
        "albert",
        {"hidden_act": "swish"},
        "hidden_act: 'swish' is not supported; expected one of gelu_new",
    ),
    ("albert", {"num_hidden_groups": 4}, "num_hidden_groups: 4 groups, but only 3 layers"),
    ("modernbert", {"norm_bias": True}, "norm_bias: True is not a ModernBERT; expected False"),
    ("modernbert", {"attention_bias": True}, "attention_bias: True"),
    ("modernbert", {"mlp_bias": True}, "mlp_bias: True"),
    ("modernbert", {"decoder_bias": False}, "decoder_bias: False is not a ModernBERT; expected True"),
    ("modernbert", {"hidden_activation": "silu"}, "hidden_activation: 'silu'"),
    ("modernbert", {"classifier_pooling": "max"}, "classifier_pooling: 'max' is not supported"),
    ("modernbert", {"local_attention": 1}, "local_attention: 1 is not an integer above 1"),
    ("modernbert", {"layer_types": ["full_attention"]}, "layer_types: expected 'full_attention' or"),
    ("modernbert", {"layer_types": None, "global_attn_every_n_layers": 0}, "global_attn_every_n_layers: 0"),
    ("modernbert", {"rope_scaling": {"type": "linear"}}, "rope_scaling: {'type': 'linear'}"),
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_parameters: "),
    ("modernbert", {"rope_parameters": {"full_attention": {"factor": 2.0}}}, "rope_parameters: factor"),
    ("modernbert", {"rope_parameters": None, "local_rope_theta": None}, "local_rope_theta: None"),
    ("modernbert", {"rope_parameters": None, "local_rope_theta": 10**400}, "local_rope_theta: 1000"),
    ("modernbert", {"layer_types": [{}, {}, {}]}, "layer_types: expected 'full_attention' or"),
]


@pytest.mark.parametrize(("model_type", "changes", "message"), REFUSED)
def test_a_key_that_makes_another_model_is_refused_by_name(
    tmp_path: Path, model_type: str, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "config.json"
    config = json.loads(their_config(Case(model_type, {"hidden_dim": 40})).to_json_string())
    path.write_text(json.dumps(config))
    read_architecture(path)
    path.write_text(json.dumps(config | changes))
    with pytest.raises(UserError) as caught:
        read_architecture(path)
    where, problem = str(caught.value).split("\n  ")
    assert where == f"{path}:"
    assert problem.startswith(message)
