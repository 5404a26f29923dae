from dataclasses import replace
from pathlib import Path

import pytest

from bertcli.config.task import TaskSettings
from bertcli.families.bert import BERT
from bertcli.folders.task_folder import SETTINGS, read_task, task_keys, task_type
from bertcli.system.errors import UserError
from tests.folders.folders import ODD

WHERE = Path(".")
SIZES = replace(ODD, max_positions=1024)


def classifier(**more):
    return {"architectures": ["BertForSequenceClassification"]} | more


def labels(*names):
    return {str(i): name for i, name in enumerate(names)}


@pytest.mark.parametrize(
    ("config", "settings", "names"),
    [
        (
            classifier(id2label=labels("bad", "good"), problem_type=None),
            {"type": "classification", "text": "text"},
            ("bad", "good"),
        ),
        (
            classifier(),
            {"type": "classification", "text": "text"},
            ("LABEL_0", "LABEL_1"),
        ),
        (
            classifier(num_labels=3),
            {"type": "classification", "text": "text"},
            ("LABEL_0", "LABEL_1", "LABEL_2"),
        ),
        (classifier(num_labels=1), {"type": "regression", "text": "text"}, ()),
        (
            classifier(problem_type="regression", id2label=labels("x")),
            {"type": "regression", "text": "text"},
            (),
        ),
        (
            classifier(problem_type="multi_label_classification", id2label=labels("x", "y")),
            {"type": "classification", "text": "text", "multi_label": True},
            ("x", "y"),
        ),
        (
            classifier(problem_type="single_label_classification", id2label=labels("x")),
            {"type": "classification", "text": "text"},
            ("x",),
        ),
        (
            {"architectures": ["BertForTokenClassification"], "id2label": labels("O", "B-X", "I-X")},
            {"type": "token-classification", "words": "given"},
            ("O", "B-X", "I-X"),
        ),
        (
            {"architectures": ["BertForQuestionAnswering"]},
            {"type": "question-answering", "null_threshold": None},
            (),
        ),
        (
            {"architectures": ["BertForMultipleChoice"]},
            {"type": "multiple-choice", "text": "text", "choices": "choices"},
            (),
        ),
    ],
)
def test_a_folder_of_transformers_is_read_as_its_class_says(config, settings, names):
    usual = {"max_length": 512, "doc_stride": 128}
    assert read_task(WHERE, config, SIZES) == (TaskSettings(**settings | usual), names)


def test_no_row_is_longer_than_the_model():
    settings, _ = read_task(WHERE, classifier(), replace(ODD, max_positions=40))
    assert (settings.max_length, settings.doc_stride) == (40, 10)


def test_labels_stand_in_the_order_of_their_numbers():
    names = [f"label {i}" for i in range(12)]
    shuffled = dict(sorted(labels(*names).items()))
    assert list(shuffled) != list(labels(*names))
    assert read_task(WHERE, classifier(id2label=shuffled), SIZES)[1] == tuple(names)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (classifier(id2label=labels("a", "a")), "id2label gives two outputs the same name"),
        (
            classifier(problem_type="regression", id2label=labels("a", "b")),
            "a regression with 2 values a row; bertcli supports one",
        ),
        (
            classifier(**{SETTINGS: {"type": "classification", "text": "t", "max_lenght": 4}}),
            r"config\.json, bertcli_task: 1 problem(.|\n)*max_lenght",
        ),
        (classifier(**{SETTINGS: "classification"}), r"config\.json, bertcli_task: 1 problem"),
    ],
)
def test_what_cannot_be_used_is_refused(config, message):
    with pytest.raises(UserError, match=message):
        read_task(WHERE, config, SIZES)


def test_the_keys_that_transformers_reads():
    single = TaskSettings(type="classification", text="t")
    keys = task_keys(single, ("no", "yes"))
    assert keys["id2label"] == {"0": "no", "1": "yes"}
    assert keys["label2id"] == {"no": 0, "yes": 1}
    assert keys["problem_type"] == "single_label_classification"
    assert task_keys(TaskSettings(type="regression", text="t"), ())["id2label"] == {"0": "LABEL_0"}
    assert set(task_keys(TaskSettings(type="question-answering"), ())) == {SETTINGS}


@pytest.mark.parametrize("classes", [None, [], ["BertForPreTraining"], ["BertModel"]])
def test_a_pretrained_model_has_no_task(classes):
    assert task_type({"architectures": classes}, BERT) is None
