"""What is decided on the text besides model, rows and steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.config.schema import CorpusConfig
from bertcli.start.amount import Amount
from bertcli.start.corpus import CorpusLook
from bertcli.start.pretraining import _objective, _that_fit
from bertcli.text.sources import Source

SOURCES = [Source(str(number), Path(str(number)), listed=False) for number in range(100)]


@pytest.mark.parametrize(
    ("share", "names"),
    [(0.03, ["0", "33", "66"]), (0.0, ["0", "50"]), (0.9, None), (1.0, None), (7.0, None)],
)
def test_a_share_of_the_files_is_even_and_never_more_than_a_config_names(share: float, names) -> None:
    kept = [source.name for source in _that_fit(SOURCES, share)]
    assert kept == (names or [source.name for source in SOURCES])


def test_one_file_is_never_left_out() -> None:
    assert _that_fit(SOURCES[:1], 0.1) == SOURCES[:1]


@pytest.mark.parametrize(
    ("documents", "one_sentence", "known", "objective"),
    [(40, 0.1, True, None), (40, 0.6, True, "mlm"), (1, 0.0, True, "mlm"), (40, 0.1, False, "mlm")],
)
def test_text_without_pairs_predicts_words_alone(documents, one_sentence, known, objective) -> None:
    amount = Amount(1, 1e6, documents, words=1e5, is_exact=True, one_sentence=one_sentence)
    look = CorpusLook(CorpusConfig(files=["x"]), has_documents=known)
    assert _objective(look, amount)[0] == objective
