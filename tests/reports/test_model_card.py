"""The card of a pretrained model, as a hub would read it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import yaml

from bertcli.corpus.manifest import SideCounts
from bertcli.objectives.base import Reference
from bertcli.reports.cards import model_card
from bertcli.training.scores import Scores
from tests.decided import recipe
from tests.folders.folders import random_model, tiny_tokenizer

REFERENCES = [Reference("mlm", first_loss=None, chance_loss=6.0, line="", predicts_words=True)]


def test_the_card_says_the_same_to_yaml_and_markdown_and_no_local_path() -> None:
    config = recipe(
        {
            "output_dir": "/home/someone/run",
            "corpus": {"files": ["/home/someone/a|b\n<i>.txt", "texts/*.txt"], "language": "no"},
            "model": {
                "init_from": "/home/someone/.cache/hub/models--org--name/snapshots/0123",
                "dropout": 0.1,
            },
            "tokenizer": {"vocab_size": 400},
            "data": {"objective": "mlm+nsp", "mask_rate": 0.15, "mask_split": [0.8, 0.1, 0.1]},
            "training": {"batch_size": 8, "learning_rate": 1e-3, "warmup_steps": 1, "steps": 1},
        }
    )
    sides = SimpleNamespace(train=SideCounts(), heldout=SideCounts(), unigram_entropy=1.0)
    store: Any = SimpleNamespace(manifest=sides, tokenizer=tiny_tokenizer())
    card = model_card(config, store, random_model(), REFERENCES, scores=None, lines=["verdict: none"])
    assert yaml.safe_load(card.split("---\n")[1]) == {
        "language": "no",
        "library_name": "transformers",
        "pipeline_tag": "fill-mask",
        "tags": ["bert", "bertcli"],
    }
    assert "| files | a\\|b \\<i\\>.txt, texts/\\*.txt |\n" in card
    assert "| started from | org/name |" in card
    assert "/home" not in card
    assert 'bertcli predict-mask . "... [MASK] ..."' in card  # no English for a model of another language


def test_a_run_without_pairs_has_no_word_of_them() -> None:
    config = recipe(
        {
            "output_dir": "run",
            "corpus": {"files": ["a.txt"]},
            "model": {"dropout": 0.1},
            "tokenizer": {"vocab_size": 400},
            "data": {"mask_rate": 0.15, "mask_split": [0.8, 0.1, 0.1], "objective": "mlm"},
            "training": {"batch_size": 8, "learning_rate": 1e-3, "warmup_steps": 1, "steps": 1},
        }
    )
    sides = SimpleNamespace(train=SideCounts(), heldout=SideCounts(), unigram_entropy=1.0)
    store: Any = SimpleNamespace(manifest=sides, tokenizer=tiny_tokenizer())
    scores = Scores({"mlm": 2.0}, {"mlm": 0.5}, 10)
    card = model_card(config, store, random_model(), REFERENCES, scores=scores, lines=["verdict: none"])
    assert "| mlm | 2.000 | 50.0% | 7.4 |  |" in card
    assert "nsp" not in card.lower()
