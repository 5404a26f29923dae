"""SentencePiece models are read as the library that wrote them reads them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import sentencepiece

from bertcli.system.errors import UserError
from bertcli.tokenizer.pipelines import CONTROL, USER_DEFINED, read_spm_model
from tests.tokenizer.tokenizers_of import make_tokenizer_folder, sample_lines


@pytest.mark.parametrize(("model_type", "name"), [("albert", "spiece.model"), ("deberta-v2", "spm.model")])
def test_pieces_scores_and_types_are_the_librarys(tmp_path: Path, model_type: str, name: str):
    path = make_tokenizer_folder(model_type, tmp_path, slow=True) / name
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = read_spm_model(path)
    size = theirs.get_piece_size()
    assert ours.pieces == [(theirs.id_to_piece(i), theirs.get_score(i)) for i in range(size)]
    control = [i for i in range(size) if theirs.is_control(i)]
    assert [i for i, kind in enumerate(ours.types) if kind == CONTROL] == control
    named = [ours.pieces[i][0] for i, kind in enumerate(ours.types) if kind == USER_DEFINED]
    assert named == (["(", ")", '"', "-", ".", "–", "£", "€"] if model_type == "albert" else [])
    assert len(ours.charsmap) > 1000


def test_another_kind_of_model_is_refused_by_name(tmp_path: Path):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for line in sample_lines(50) if line.strip() and "\x00" not in line),
        model_writer=written,
        vocab_size=200,
        model_type="bpe",
        minloglevel=2,
    )
    (tmp_path / "spm.model").write_bytes(written.getvalue())
    with pytest.raises(UserError, match=r"spm.model: a SentencePiece model of the kind BPE; only Unigram is"):
        read_spm_model(tmp_path / "spm.model")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\x05ab", "a field is cut off"),
        (b"version https://git-lfs", "not a SentencePiece model"),
        (b"\x0a\x02\x10\x01", "not a SentencePiece model"),  # a piece without text
        (b"\x08\x01", "a number in place of a message or text"),
        (b"\x0a\x06\x0a\x01a\x1a\x01b", "text in place of a number"),
        (b"", "a SentencePiece model without pieces"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, data: bytes, reason: str):
    (tmp_path / "spm.model").write_bytes(data)
    with pytest.raises(UserError, match=rf"spm.model: .*{reason}.*Copy or download it again"):
        read_spm_model(tmp_path / "spm.model")


def test_a_model_that_cannot_be_opened_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"gone.model: cannot be read: No such file"):
        read_spm_model(tmp_path / "gone.model")
