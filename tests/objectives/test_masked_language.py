"""The terms of masked language modeling and what is known of them before a run."""

from __future__ import annotations

import math

import pytest

from bertcli.model.architecture import Architecture
from bertcli.objectives.base import Reference
from bertcli.objectives.learner import learner_of

SIZES = Architecture(1000, 64, 1, 1, 64, 16)


def references_of(objective: str, fresh: bool) -> tuple[Reference, ...]:
    return learner_of(objective).references(SIZES, unigram_entropy=5.0, fresh=fresh, mask_rate=0.4)


def test_each_term_has_its_reference() -> None:
    words, label = references_of("mlm+nsp", fresh=True)
    assert (words.term, label.term) == ("mlm", "nsp")
    assert words.first_loss == pytest.approx(math.log(1000), abs=0.1)
    assert (words.chance_loss, words.chance_accuracy, words.predicts_words) == (5.0, None, True)
    assert (label.chance_loss, label.chance_accuracy) == (math.log(2), 0.5)
    assert "unigram entropy of the corpus: 5.000" in words.line
    assert label.line == "nsp by chance: loss 0.693, accuracy 50%; label 0 is IsNext"


def test_rows_of_one_text_have_one_term() -> None:
    (words,) = references_of("mlm", fresh=True)
    assert words.term == "mlm"


def test_trained_weights_have_no_expected_first_loss() -> None:
    references = references_of("mlm+nsp", fresh=False)
    assert [each.first_loss for each in references] == [None, None]
