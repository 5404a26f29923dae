import json

import pytest
import torch

from bertcli.config.task import TaskConfig, TaskSettings
from bertcli.folders.model_files import write_model_files
from bertcli.folders.model_folder import load_model_folder
from bertcli.folders.task_folder import declare_task, load_for_finetuning, load_task_folder
from bertcli.system.errors import UserError
from tests.folders.folders import (
    LABELS,
    ODD,
    SETTINGS,
    added,
    change_config,
    renamed,
    rewrite,
    saved_model,
    saved_task,
    tiny_tokenizer,
    without,
)

BODY = "bert.embeddings.word_embeddings.weight"
POOLER = {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
CLASSIFIER = {"classifier.weight", "classifier.bias"}
SPANS = {"qa_outputs.weight", "qa_outputs.bias"}


def assert_same(got, want):
    assert list(got.state_dict()) == list(want.state_dict())
    for name, value in want.state_dict().items():
        assert torch.equal(got.state_dict()[name], value), name


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_saved_task_comes_back_to_the_bit(tmp_path, kind):
    model = saved_task(tmp_path, kind, classifier_dropout=0.3)
    loaded = load_task_folder(tmp_path)
    assert_same(loaded.model, model)
    assert type(loaded.model) is type(model)
    assert loaded.model.architecture == model.architecture
    assert loaded.settings == SETTINGS[kind]
    assert loaded.labels == LABELS.get(kind, ())
    assert loaded.report.new == loaded.report.left_aside == ()
    assert loaded.tokenizer.vocab_size == tiny_tokenizer().vocab_size


def test_what_only_training_needs_is_not_saved(tmp_path):
    whole = TaskConfig(
        type="classification", text="t", label="l", train="secret.tsv", class_weights="balanced"
    )
    model = saved_task(tmp_path, "classification")
    write_model_files(tmp_path, model, tiny_tokenizer(), declare_task(whole, ("a", "b", "c")))
    saved = set(json.loads((tmp_path / "config.json").read_text())["bertcli_task"])
    assert saved == set(TaskSettings.model_fields) - {"bad_bytes"}  # which is for the training files
    assert load_task_folder(tmp_path).settings == whole.settings


def test_the_card_is_saved(tmp_path):
    model = saved_task(tmp_path / "one", "questions")
    declared = declare_task(SETTINGS["questions"], ())
    write_model_files(tmp_path, model, tiny_tokenizer(), declared, card="# Answers\n")
    assert (tmp_path / "README.md").read_text() == "# Answers\n"


def test_a_head_has_its_own_dropout_where_the_folder_says_so(tmp_path):
    saved_task(tmp_path, "tokens")
    assert load_task_folder(tmp_path).model.get_submodule("dropout").p == ODD.dropout
    change_config(tmp_path, classifier_dropout=0.35)
    model = load_task_folder(tmp_path).model
    assert model.get_submodule("dropout").p == 0.35
    assert model.body.embeddings.dropout.p == ODD.dropout


def test_more_labels_than_outputs_are_refused(tmp_path):
    saved_task(tmp_path, "classification")
    change_config(tmp_path, id2label={str(i): f"label {i}" for i in range(12)})
    with pytest.raises(UserError, match=r"classifier\.weight is \(3, 15\), config\.json asks for \(12, 15\)"):
        load_task_folder(tmp_path)


def test_a_fine_tuned_folder_without_its_head_is_refused(tmp_path):
    saved_task(tmp_path, "classification")
    rewrite(tmp_path, without("classifier"))
    with pytest.raises(UserError, match=r"2 weights do not fit this BERT:\n  missing: classifier\.weight"):
        load_task_folder(tmp_path)


@pytest.mark.parametrize(
    ("nsp", "classes", "what"),
    [
        (True, ["BertForPreTraining"], "a masked language model"),
        (False, ["BertForMaskedLM"], "a masked language model"),
        (True, ["BertModel"], "BertModel"),
        (True, "absent", "a BERT without a head"),
    ],
)
def test_a_model_that_is_not_fine_tuned(tmp_path, nsp, classes, what):
    saved_model(tmp_path, nsp=nsp)
    change_config(tmp_path, architectures=classes)
    with pytest.raises(UserError) as caught:
        load_task_folder(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'config.json'}: this is {what}, not a fine-tuned model; fine-tune it first: "
        f"bertcli finetune CONFIG"
    )


@pytest.mark.parametrize(
    ("kind", "head", "left_aside"),
    [
        ("classification", CLASSIFIER, set()),
        ("tokens", CLASSIFIER, POOLER),
        ("questions", SPANS, POOLER),
        ("choices", CLASSIFIER, set()),
    ],
)
def test_from_a_pretrained_folder_the_head_alone_is_new(tmp_path, kind, head, left_aside):
    pretrained = saved_model(tmp_path)
    torch.manual_seed(3)
    loaded = load_for_finetuning(tmp_path, SETTINGS[kind], LABELS.get(kind, ()))
    assert set(loaded.report.new) == head
    assert loaded.report.new_parts() == ["task head"]
    assert BODY in loaded.report.loaded
    assert {name for name in loaded.report.left_aside if not name.startswith("cls.")} == left_aside
    assert any(name.startswith("cls.predictions") for name in loaded.report.left_aside)
    assert_same(loaded.model.body, pretrained.body)
    assert all(parameter.requires_grad and not parameter.is_meta for parameter in loaded.model.parameters())


def test_without_a_pooler_in_the_folder_it_is_new(tmp_path):
    saved_model(tmp_path, nsp=False)
    report = load_for_finetuning(tmp_path, SETTINGS["regression"], ()).report
    assert set(report.new) == POOLER | CLASSIFIER
    assert report.new_parts() == ["pooler", "task head"]


def test_a_bare_encoder_with_old_names_and_a_buffer(tmp_path):
    saved_model(tmp_path)
    rewrite(tmp_path, without("cls."))
    rewrite(tmp_path, added(bert__embeddings__position_ids=torch.arange(19)[None]))
    rewrite(tmp_path, renamed("bert.", ""), to="pytorch_model.bin")
    report = load_for_finetuning(tmp_path, SETTINGS["classification"], LABELS["classification"]).report
    assert set(report.new) == CLASSIFIER
    assert report.left_aside == ("bert.embeddings.position_ids",)


def test_a_new_head_depends_on_torchs_seed(tmp_path):
    saved_model(tmp_path)

    def head(seed):
        torch.manual_seed(seed)
        model = load_for_finetuning(tmp_path, SETTINGS["tokens"], LABELS["tokens"]).model
        return model.get_parameter("classifier.weight")

    assert torch.equal(head(1), head(1))
    assert not torch.equal(head(1), head(2))


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_same_task_goes_on_with_its_head(tmp_path, kind):
    model = saved_task(tmp_path, kind)
    loaded = load_for_finetuning(tmp_path, SETTINGS[kind], LABELS.get(kind, ()))
    assert loaded.report.new == loaded.report.left_aside == ()
    assert_same(loaded.model, model)


@pytest.mark.parametrize(
    ("source", "target", "labels", "new", "left_aside"),
    [
        ("classification", "classification", ("other", "labels", "here"), CLASSIFIER, CLASSIFIER),
        ("classification", "multi-label", LABELS["classification"], CLASSIFIER, CLASSIFIER),
        ("classification", "tokens", LABELS["classification"], CLASSIFIER, CLASSIFIER | POOLER),
        ("choices", "regression", (), CLASSIFIER, CLASSIFIER),
        ("questions", "choices", (), CLASSIFIER | POOLER, SPANS),
        ("regression", "questions", (), SPANS, CLASSIFIER | POOLER),
    ],
)
def test_another_task_or_other_labels_get_a_new_head(tmp_path, source, target, labels, new, left_aside):
    before = saved_task(tmp_path, source)
    loaded = load_for_finetuning(tmp_path, SETTINGS[target], labels)
    assert set(loaded.report.new) == new
    assert set(loaded.report.left_aside) == left_aside
    assert loaded.labels == labels
    assert_same(loaded.model.body, before.body)


OTHER_LABELS = {
    "classification": ("new", "maybe: é", "yes", "newer"),
    "multi-label": ("gray", "green", "pink"),
    "tokens": ("O", "B-GPE", "I-GPE", "B-LOC", "I-LOC"),
}


@pytest.mark.parametrize("kind", OTHER_LABELS)
def test_labels_that_stay_keep_their_outputs_to_the_bit(tmp_path, kind):
    labels, before = OTHER_LABELS[kind], saved_task(tmp_path / "task", kind)
    saved_model(tmp_path / "pretrained")
    torch.manual_seed(3)
    all_new = load_for_finetuning(tmp_path / "pretrained", SETTINGS[kind], labels).model
    torch.manual_seed(3)
    loaded = load_for_finetuning(tmp_path / "task", SETTINGS[kind], labels)
    assert (loaded.labels, loaded.before) == (labels, LABELS[kind])
    assert loaded.report.new == loaded.report.left_aside == ()
    assert_same(loaded.model.body, before.body)
    for name in ("classifier.weight", "classifier.bias"):
        own = loaded.model.get_parameter(name)
        assert own.requires_grad
        for number, label in enumerate(labels):
            is_kept = label in LABELS[kind]
            source = before if is_kept else all_new
            row = source.get_parameter(name)[LABELS[kind].index(label) if is_kept else number]
            assert torch.equal(own[number], row), (name, label)


def test_another_order_of_the_labels_changes_that_of_the_outputs_alone(tmp_path):
    before = saved_task(tmp_path, "classification").get_parameter("classifier.weight")
    loaded = load_for_finetuning(tmp_path, SETTINGS["classification"], ("yes", "maybe: é", "no"))
    assert torch.equal(loaded.model.get_parameter("classifier.weight"), before[[1, 2, 0]])
    loaded = load_for_finetuning(tmp_path, SETTINGS["classification"], LABELS["classification"])
    assert loaded.before == ()


def test_going_on_with_pretraining_leaves_the_task_aside(tmp_path):
    saved_task(tmp_path, "tokens")
    loaded = load_model_folder(tmp_path, pairs=False)
    assert loaded.task == "token-classification"
    assert set(loaded.report.left_aside) == CLASSIFIER
    assert not loaded.report.has("mlm_head")
    saved_model(tmp_path / "pretrained")
    assert load_model_folder(tmp_path / "pretrained").task is None
