"""Pieces of each kind for people, and the kinds that are not supported."""

from __future__ import annotations

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from bertcli.system.errors import UserError
from bertcli.tokenizer.pieces import check_special, spelling_of


def byte_level() -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return backend


def test_byte_pieces_are_text_with_a_sign_for_the_blank():
    spelling = spelling_of(byte_level(), "here")
    readable = [spelling.readable(piece) for piece in ("Ġthe", "the", "ĠÃ©", "Ã", "Ġ", "ĠĠ", "[MASK]", "  ")]
    assert readable == ["▁the", "the", "▁é", "�", "▁", "▁ ", "[MASK]", "▁ "]
    assert [spelling.continues(piece) for piece in ("Ġthe", "the", "Ġ", "Ã")] == [False, True, False, True]
    assert spelling.join(["Ġthe", "Ġcaf", "Ã", "©", "!"]) == "the café!"


def test_unigram_pieces_are_their_own_text():
    backend = tokenizers.Tokenizer(models.Unigram([("<unk>", 0.0)], 0, byte_fallback=False))
    spelling = spelling_of(backend, "here")
    assert [spelling.readable(piece) for piece in ("▁the", "é")] == ["▁the", "é"]
    assert [spelling.continues(piece) for piece in ("▁the", "é", "▁")] == [False, True, False]
    assert spelling.join(["▁the", "▁caf", "é", "!"]) == "the café!"


def test_wordpieces_keep_their_prefix():
    spelling = spelling_of(tokenizers.Tokenizer(models.WordPiece({}, unk_token="[UNK]")), "here")
    assert (spelling.prefix, spelling.readable("##s")) == ("##", "##s")
    assert [spelling.continues(piece) for piece in ("##s", "s")] == [True, False]
    assert spelling.join(["the", "cat", "##s", "."]) == "the cats ."


@pytest.mark.parametrize(
    ("model", "name"),
    [(models.WordLevel({"a": 0}, unk_token="a"), "WordLevel"), (models.BPE(), "BPE without bytes")],
)
def test_other_kinds_are_refused_by_name(model: models.Model, name: str):
    with pytest.raises(UserError, match=f"here: a {name} tokenizer, which bertcli does not support. Give a"):
        spelling_of(tokenizers.Tokenizer(model), "here")


def test_the_tokens_of_a_row_must_exist():
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    backend = byte_level()
    backend.add_special_tokens(["<pad>"])
    with pytest.raises(UserError, match=r"here: the vocabulary lacks mask_token <mask>\. Name the"):
        check_special(backend, names, "here")
    backend.add_special_tokens(["<mask>"])
    check_special(backend, names, "here")  # bytes need no unknown token
