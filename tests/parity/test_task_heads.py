"""The task models against transformers: folders both ways, logits, which keys it finds, the tokenizer."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bertcli.families.bert import BERT  # noqa: E402
from bertcli.folders.model_folder import load_encoder_folder  # noqa: E402
from bertcli.folders.task_folder import load_task_folder  # noqa: E402
from tests.folders.folders import LABELS, ODD, SETTINGS, head_of, save_encoder, saved_model, saved_task  # noqa: E402
from tests.parity.outputs import batch  # noqa: E402
from tests.parity.transformers_side import odd_config, saved_by_transformers  # noqa: E402

KINDS = tuple(SETTINGS)
PROBLEMS = {"regression": "regression", "multi-label": "multi_label_classification"}


@torch.no_grad()
def our_logits(model, inputs):
    return model.eval()(*inputs)


@torch.no_grad()
def their_logits(model, inputs, kind):
    """Of transformers, in the shape of ours."""
    ids_BT, segments_BT, mask_BT = inputs
    named = {"input_ids": ids_BT, "token_type_ids": segments_BT}
    named["attention_mask"] = torch.ones_like(ids_BT) if mask_BT is None else mask_BT.long()
    if kind == "choices":  # every row is a choice of the same question
        return model.eval()(**{name: value[None] for name, value in named.items()}).logits.T
    output = model.eval()(**named)
    if kind == "questions":
        return torch.stack([output.start_logits, output.end_logits], dim=-1)
    return output.logits


def assert_close(got, want, mask_BT):
    if got.ndim == 3 and mask_BT is not None:
        got, want = got[mask_BT], want[mask_BT]
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def their_folder(folder, kind):
    labels = LABELS.get(kind, ("LABEL_0",) if kind == "regression" else ())
    names = {"id2label": dict(enumerate(labels))} if labels else {}
    config = odd_config(classifier_dropout=0.25, problem_type=PROBLEMS.get(kind), **names)
    return saved_by_transformers(folder, getattr(transformers, BERT.classes[head_of(kind)]), config)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_transformers_computes_the_same_from_our_folder(tmp_path, kind, padded):
    ours = saved_task(tmp_path, kind, classifier_dropout=0.2)
    their_class = getattr(transformers, BERT.classes[head_of(kind)])
    theirs, info = their_class.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    inputs = batch(padded)
    assert_close(our_logits(ours, inputs), their_logits(theirs, inputs, kind), inputs[2])
    assert theirs.config.problem_type == PROBLEMS.get(
        kind, "single_label_classification" if kind == "classification" else None
    )
    assert theirs.config.classifier_dropout == 0.2
    if kind in LABELS:
        assert theirs.config.id2label == dict(enumerate(LABELS[kind]))
        assert theirs.config.label2id == {label: i for i, label in enumerate(LABELS[kind])}


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_we_compute_the_same_from_transformers_folder(tmp_path, kind, padded):
    theirs = their_folder(tmp_path, kind)
    loaded = load_task_folder(tmp_path)
    assert loaded.report.new == loaded.report.left_aside == ()
    assert loaded.settings.type == SETTINGS[kind].type
    assert loaded.settings.multi_label == SETTINGS[kind].multi_label
    assert loaded.labels == LABELS.get(kind, ())
    assert loaded.model.architecture.head_dropout == 0.25
    inputs = batch(padded)
    assert_close(our_logits(loaded.model, inputs), their_logits(theirs, inputs, kind), inputs[2])


@pytest.mark.parametrize("kind", KINDS)
def test_the_automatic_classes_load_our_folder(tmp_path, kind):
    saved_task(tmp_path, kind)
    assert isinstance(transformers.AutoModel.from_pretrained(tmp_path), transformers.BertModel)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("The cat sat!")["input_ids"] == [2, 5, 7, 9, 23, 3]
    cut_at = SETTINGS[kind].max_length if kind == "regression" else ODD.max_positions
    assert tokenizer.model_max_length == cut_at
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    assert config.bertcli_task["type"] == SETTINGS[kind].type


@pytest.mark.parametrize("pooler", [True, False])
def test_a_bare_encoder_is_transformers_own(tmp_path, pooler):
    saved_model(tmp_path / "whole", nsp=pooler)
    model, tokenizer = load_encoder_folder(tmp_path / "whole")
    save_encoder(tmp_path / "bare", model, tokenizer)
    theirs, info = transformers.BertModel.from_pretrained(
        tmp_path / "bare", add_pooling_layer=pooler, output_loading_info=True
    )
    assert not any(info.values()), info
    ids_BT, segments_BT, mask_BT = batch(padded=True)
    assert mask_BT is not None
    with torch.no_grad():
        got = model.eval()(ids_BT, segments_BT, mask_BT)
        want = theirs.eval()(ids_BT, mask_BT.long(), segments_BT)
    assert_close(got, want.last_hidden_state, mask_BT)
    if model.pooler is not None:
        torch.testing.assert_close(model.pooler(got[:, 0]), want.pooler_output, rtol=1e-5, atol=1e-5)
