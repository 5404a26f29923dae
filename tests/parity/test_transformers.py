"""Against transformers: weights through the saved folder, both ways; every output; which keys it finds."""

import json

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bertcli.folders.model_folder import load_model_folder, save_model_folder  # noqa: E402
from bertcli.system.errors import UserError  # noqa: E402
from tests.folders.folders import ODD, random_model, saved_model, tiny_tokenizer  # noqa: E402
from tests.parity.outputs import assert_equal_at_real_positions, batch, our_outputs  # noqa: E402
from tests.parity.transformers_side import odd_config, saved_by_transformers, their_outputs  # noqa: E402

CONFIG = odd_config()


def their_folder(folder, model_class, **options):
    return saved_by_transformers(folder, model_class, CONFIG, **options)


@pytest.mark.parametrize("padded", [False, True])
def test_transformers_computes_the_same_from_our_folder(tmp_path, padded):
    ours = saved_model(tmp_path)
    theirs, info = transformers.BertForPreTraining.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    inputs = batch(padded)
    assert_equal_at_real_positions(our_outputs(ours, inputs), their_outputs(theirs.eval(), inputs), inputs[2])


@pytest.mark.parametrize("padded", [False, True])
def test_we_compute_the_same_from_transformers_folder(tmp_path, padded):
    their_folder(tmp_path, transformers.BertForPreTraining)
    theirs = transformers.BertForPreTraining.from_pretrained(tmp_path, attn_implementation="eager")
    loaded = load_model_folder(tmp_path)
    assert loaded.report.new == loaded.report.left_aside == ()
    inputs = batch(padded)
    got = our_outputs(loaded.model.eval(), inputs)
    assert_equal_at_real_positions(got, their_outputs(theirs.eval(), inputs), inputs[2])


def test_the_comparison_sees_a_single_wrong_weight(tmp_path):
    ours = saved_model(tmp_path)
    theirs = transformers.BertForPreTraining.from_pretrained(tmp_path, attn_implementation="eager").eval()
    inputs = batch(padded=True)
    want = their_outputs(theirs, inputs)
    for name, parameter in ours.named_parameters():
        if name.endswith("attention.key.bias"):
            continue  # shifts all scores of a row alike, which the softmax does not see
        right = parameter.detach().clone()
        with torch.no_grad():
            parameter.view(-1)[0] += 0.1
        with pytest.raises(AssertionError):
            assert_equal_at_real_positions(our_outputs(ours, inputs), want, inputs[2])
        with torch.no_grad():
            parameter.copy_(right)


def test_the_automatic_classes_load_our_folder(tmp_path):
    ours = saved_model(tmp_path)
    inputs = batch(padded=True)
    ids_BT, segments_BT, mask_BT = inputs
    assert mask_BT is not None
    named = {"input_ids": ids_BT, "token_type_ids": segments_BT, "attention_mask": mask_BT.long()}
    with torch.no_grad():
        body = transformers.AutoModel.from_pretrained(tmp_path).eval()(**named)
        mlm, info = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
        logits = mlm.eval()(**named).logits
    assert not info["missing_keys"]
    want = our_outputs(ours, inputs)
    torch.testing.assert_close(body.pooler_output, want["pooled"], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(logits[mask_BT], want["mlm_logits"][mask_BT], rtol=1e-5, atol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("The cat sat!")["input_ids"] == [2, 5, 7, 9, 23, 3]
    assert tokenizer.model_max_length == ODD.max_positions


def test_a_folder_without_nsp_is_a_masked_lm_to_transformers(tmp_path):
    save_model_folder(tmp_path, random_model(nsp=False), tiny_tokenizer())
    _, info = transformers.BertForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]


@pytest.mark.parametrize(
    ("name", "options", "new", "left_aside"),
    [
        ("BertModel", {}, ["masked-language-model head", "next-sentence head"], set()),
        (
            "BertModel",
            {"add_pooling_layer": False},
            ["pooler", "masked-language-model head", "next-sentence head"],
            set(),
        ),
        ("BertForMaskedLM", {}, ["pooler", "next-sentence head"], set()),
        ("BertForNextSentencePrediction", {}, ["masked-language-model head"], set()),
        (
            "BertForSequenceClassification",
            {},
            ["masked-language-model head", "next-sentence head"],
            {"classifier.weight", "classifier.bias"},
        ),
        (
            "BertForQuestionAnswering",
            {},
            ["pooler", "masked-language-model head", "next-sentence head"],
            {"qa_outputs.weight", "qa_outputs.bias"},
        ),
    ],
)
def test_every_bert_class_of_transformers_can_be_gone_on_from(tmp_path, name, options, new, left_aside):
    theirs = their_folder(tmp_path, getattr(transformers, name), **options)
    loaded = load_model_folder(tmp_path, pairs=True)
    assert loaded.report.new_parts() == new
    assert set(loaded.report.left_aside) == left_aside
    inputs = batch(padded=True)
    ids_BT, segments_BT, mask_BT = inputs
    assert mask_BT is not None
    body = getattr(theirs, "bert", theirs)
    with torch.no_grad():
        want = body(ids_BT, mask_BT.long(), segments_BT).last_hidden_state
        got = loaded.model.eval().body(*inputs)
    torch.testing.assert_close(got[mask_BT], want[mask_BT], rtol=1e-5, atol=1e-5)


def test_another_family_is_refused(tmp_path):
    config = transformers.MPNetConfig(
        vocab_size=37, hidden_size=15, num_hidden_layers=1, num_attention_heads=5, intermediate_size=23
    )
    transformers.MPNetModel(config).save_pretrained(tmp_path)
    tiny_tokenizer().save(tmp_path)
    with pytest.raises(UserError, match="model_type is 'mpnet'"):
        load_model_folder(tmp_path)
