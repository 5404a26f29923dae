import json
import math

import pytest

from bertcli.folders.config_file import config_json, new_architecture, read_architecture
from bertcli.system.errors import UserError
from tests.decided import model_config
from tests.folders.folders import ODD, tiny_tokenizer


def written(tmp_path, **changes):
    config = json.loads(config_json(ODD, "pretraining", tiny_tokenizer())) | changes
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in config.items() if value != "absent"}))
    return path


def test_what_is_written_is_read_again(tmp_path):
    assert read_architecture(written(tmp_path)) == ODD


def test_every_rate_is_obeyed(tmp_path):
    got = read_architecture(
        written(
            tmp_path,
            type_vocab_size=3,
            layer_norm_eps=1e-5,
            initializer_range=0.05,
            hidden_dropout_prob=0.3,
            attention_probs_dropout_prob=0,
            classifier_dropout=0.4,
        )
    )
    assert (got.num_segments, got.layer_norm_eps, got.init_std) == (3, 1e-5, 0.05)
    assert (got.dropout, got.attention_dropout, got.head_dropout) == (0.3, 0.0, 0.4)


def test_without_a_rate_of_its_own_a_head_has_that_of_the_hidden_states(tmp_path):
    assert read_architecture(written(tmp_path, hidden_dropout_prob=0.3)).head_dropout == 0.3


def test_a_config_that_leaves_them_out_means_googles_release(tmp_path):
    absent = dict.fromkeys(
        ("model_type", "type_vocab_size", "layer_norm_eps", "initializer_range", "hidden_act"), "absent"
    )
    got = read_architecture(written(tmp_path, **absent))
    assert (got.num_segments, got.layer_norm_eps, got.init_std) == (2, 1e-12, 0.02)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "t5"}, "model_type is 't5'; bertcli reads 'bert' (BERT)"),
        ({"hidden_act": "relu"}, "hidden_act: 'relu' is not a BERT; expected 'gelu'"),
        ({"hidden_act": "gelu_new"}, "hidden_act: 'gelu_new' is not a BERT; expected 'gelu'"),
        (
            {"position_embedding_type": "relative_key"},
            "position_embedding_type: 'relative_key' is not a BERT",
        ),
        ({"is_decoder": True}, "is_decoder: True is not a BERT; expected False"),
        ({"add_cross_attention": True}, "add_cross_attention: True is not a BERT"),
        ({"hidden_size": "absent"}, "hidden_size: missing"),
        (
            {"num_hidden_layers": 10**9},
            "num_hidden_layers: 1000000000 is too large; at most 1,000",
        ),
        (
            {"hidden_size": 10**12},
            "hidden_size: 1000000000000 is too large; at most 16,777,216",
        ),
        ({"num_hidden_layers": 0}, "num_hidden_layers: 0 is not an integer above 0"),
        ({"vocab_size": "many"}, "vocab_size: 'many' is not an integer above 0"),
        ({"num_attention_heads": 4}, "num_attention_heads: 4 does not divide hidden_size 15"),
        ({"hidden_dropout_prob": 1.5}, "hidden_dropout_prob: 1.5 is not a number from 0 to below 1"),
        ({"classifier_dropout": "half"}, "classifier_dropout: 'half' is not a number from 0 to below 1"),
        ({"initializer_range": 0}, "initializer_range: 0 would give all weights of a new head the same"),
        ({"layer_norm_eps": math.nan}, "layer_norm_eps: nan is not a number from 0 to below 1"),
    ],
)
def test_a_config_that_asks_for_something_else_is_refused_by_name(tmp_path, changes, message):
    path = written(tmp_path, **changes)
    with pytest.raises(UserError) as caught:
        read_architecture(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_all_problems_stand_in_one_message(tmp_path):
    with pytest.raises(UserError, match=r"hidden_act(.|\n)*is_decoder(.|\n)*hidden_size"):
        read_architecture(written(tmp_path, hidden_act="silu", is_decoder=True, hidden_size=-1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "cannot be read as JSON"),
        (b"\xff\xfe", "cannot be read as JSON"),
        (b"[1]", "expected a JSON object, found list"),
    ],
)
def test_a_damaged_config_is_named(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_architecture(path)


def test_a_new_model_has_the_rotary_base_of_its_config():
    for base, bases in ((None, (160_000.0, 10_000.0)), (500.0, (500.0, 10_000.0))):
        sizes = model_config(family="modernbert", preset="tiny", rotary_base=base, dropout=0.0)
        assert new_architecture(sizes, vocab_size=300).rotary_bases == bases
