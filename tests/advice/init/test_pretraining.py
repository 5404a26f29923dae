"""What is decided on the text besides model, rows and steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bertcli.advice.init.amount import Amount, that_fit
from bertcli.advice.init.corpus import CorpusLook
from bertcli.advice.init.pretraining import _objective
from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.files import CorpusFile


def written(folder: Path, sizes: Sequence[int]) -> list[CorpusFile]:
    """Files of so many bytes, named by their numbers."""
    for number, size in enumerate(sizes):
        (folder / str(number)).write_bytes(b"a" * size)
    return [CorpusFile(str(number), folder / str(number), listed=False) for number in range(len(sizes))]


@pytest.mark.parametrize(
    ("share", "names"),
    [(0.03, ["16", "50", "83"]), (0.0, ["25", "75"]), (0.9, None), (1.0, None), (7.0, None)],
)
def test_a_share_of_the_files_is_even_and_never_more_than_a_config_names(
    tmp_path: Path, share: float, names
) -> None:
    files = written(tmp_path, [100] * 100)
    kept = [file.name for file in that_fit(files, share)]
    assert kept == (names or [file.name for file in files])


def test_the_share_is_of_the_bytes(tmp_path: Path) -> None:
    files = written(tmp_path, [10, 10, 10, 10, 10, 1000, 10, 10, 10, 10])
    kept = [file.name for file in that_fit(files, 0.5)]
    assert kept == ["1", "3", "6", "8"]  # five would have the large one among them


def test_one_file_is_never_left_out(tmp_path: Path) -> None:
    files = written(tmp_path, [100])
    assert that_fit(files, 0.1) == files


@pytest.mark.parametrize(
    ("documents", "one_sentence", "known", "objective"),
    [(40, 0.1, True, None), (40, 0.6, True, "mlm"), (1, 0.0, True, "mlm"), (40, 0.1, False, "mlm")],
)
def test_text_without_pairs_predicts_words_alone(documents, one_sentence, known, objective) -> None:
    amount = Amount(1, 1e6, documents, words=1e5, is_exact=True, one_sentence=one_sentence)
    look = CorpusLook(CorpusConfig(files=["x"]), has_documents=known)
    line = _objective(look, amount)
    assert (line and line.value) == objective
