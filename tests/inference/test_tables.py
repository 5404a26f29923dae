"""Scores as a person reads them, and as a program does."""

from __future__ import annotations

import json

from bertcli.inference.evaluate_task import scores_json, scores_table
from bertcli.training.scores import Scores

SCORES = Scores(
    {"": 0.25},
    {},
    tokens=100,
    metrics={
        "accuracy": 0.75,
        "per_class": {
            "ham": {"precision": 1.0, "recall": 0.5, "count": 2},
            "a label that is long": {"precision": 0.0, "recall": 0.0, "count": 0},
        },
        "confusion_matrix": [[1, 12345], [0, 2]],
    },
)


def test_json_holds_everything() -> None:
    assert json.loads(json.dumps(scores_json(SCORES))) == {"loss": 0.25, **SCORES.metrics}


def test_binary_f1_says_of_which_label_it_is() -> None:
    metrics = {"accuracy": 0.75, "positive_label": "a label that is very long", "f1": 0.5}
    scores = Scores({"": 0.25}, {}, tokens=100, metrics=metrics)
    assert scores_json(scores) == {"loss": 0.25, **metrics}
    assert scores_table(scores).split("\n")[1:] == [
        "accuracy                    0.7500",
        "f1 of a label that is very long 0.5000",
    ]
    assert scores.numbers == {"accuracy": 0.75, "f1": 0.5}
    assert SCORES.title("accuracy") == "accuracy"


def test_columns_stand_below_each_other() -> None:
    assert scores_table(SCORES).split("\n") == [
        "loss                        0.2500",
        "accuracy                    0.7500",
        "",
        "per_class               precision     recall      count",
        "ham                        1.0000     0.5000          2",
        "a label that is long       0.0000     0.0000          0",
        "",
        "confusion_matrix (a row for each right label, a column for each given one)",
        "         1   12345",
        "         0       2",
    ]


def test_a_table_may_be_empty() -> None:
    assert "per_type" in scores_table(Scores({"": 0.0}, {}, 0, {"per_type": {}}))
