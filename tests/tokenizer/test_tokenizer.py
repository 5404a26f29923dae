"""Loading, saving and using a tokenizer; parity with transformers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from tokenizers import processors
from transformers import AutoTokenizer

from bertcli.samples import SAMPLES
from bertcli.system.errors import UserError
from bertcli.tokenizer.frame import Frame
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from bertcli.tokenizer.wordpiece import SPECIAL_TOKENS, Normalization
from tests.tokenizer.tokenizers_of import make_tokenizer_folder
from tests.wordpieces import wordpiece

PIECES = [
    *SPECIAL_TOKENS,
    "the",
    "cat",
    "s",
    "##s",
    "[",
    "]",
    "mask",
    "é",
    "É",
    "e",
    "E",
    "##a",
    ".",
    "'",
    "日",
]
HARD = "The cats[MASK] [SEP] É é \u2028 日日 don't\u00a0a\x07b \ufffd 🎉 …“quoted” " + "x" * 200


@pytest.fixture(scope="module")
def classics() -> list[str]:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:1500:3]


@pytest.fixture(scope="module")
def trained(classics: list[str]) -> Tokenizer:
    return train_tokenizer(classics, 1200)


def small(normalization: Normalization = Normalization()) -> Tokenizer:
    return wordpiece(PIECES, normalization)


def write_vocabulary(path: Path, pieces: list[str] = PIECES) -> Path:
    path.write_bytes("".join(f"{piece}\n" for piece in pieces).encode())
    return path


def test_the_attributes_say_what_is_in_the_vocabulary():
    tokenizer = small()
    assert (tokenizer.vocab_size, tokenizer.special_ids) == (len(PIECES), (0, 1, 2, 3, 4))
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id, tokenizer.mask_token) == (
        0,
        1,
        4,
        "[MASK]",
    )
    assert tokenizer.frame == Frame((2,), (3,), (3,), two_segments=True)
    assert [PIECES[i] for i in np.flatnonzero(tokenizer.continuation)] == ["##s", "##a"]
    assert (tokenizer.continuation.dtype, tokenizer.lowercase, tokenizer.strip_accents) == (
        np.bool_,
        True,
        None,
    )


def test_special_tokens_in_a_text_are_plain_text(trained: Tokenizer):
    for token in SPECIAL_TOKENS:
        ids = trained.encode(f"a {token} b")
        known = set(ids) - {trained.unk_id}
        assert not known & set(trained.special_ids)
        assert trained.encode_batch([f"a {token} b"]) == [ids]
    assert [PIECES[i] for i in small().encode("[MASK]")] == ["[", "mask", "]"]


def test_encode_and_encode_batch_agree(trained: Tokenizer, classics: list[str]):
    texts = [*classics[:100], HARD, ""]
    assert trained.encode_batch(texts) == [trained.encode(text) for text in texts]


def test_every_piece_has_its_place_in_the_text(trained: Tokenizer, classics: list[str]):
    texts = [*classics[:100], HARD, ""]
    placed = trained.encode_with_spans(texts)
    assert [each.ids for each in placed] == trained.encode_batch(texts)
    for text, each in zip(texts, placed, strict=True):
        assert each.spans.shape == (len(each.ids), 2)
        assert each.spans.dtype == np.int32
        assert (np.diff(each.spans.ravel()) >= 0).all()  # in order, none over another
        for token_id, (start, end) in zip(each.ids, each.spans.tolist(), strict=True):
            if text != HARD and token_id != trained.unk_id:
                assert trained.token(token_id).removeprefix("##") == text[start:end].lower()


def test_places_count_characters_whatever_normalization_does():
    text = "\x07The 🎉 cafe\u0301 É[MASK]日"
    (placed,) = small().encode_with_spans([text])
    found = [text[start:end] for start, end in placed.spans.tolist()]
    assert found == ["The", "🎉", "cafe", "É", "[", "MASK", "]", "日"]


def test_decode_is_readable():
    tokenizer = small()
    assert tokenizer.decode(tokenizer.encode("The cats.")) == "the cats."
    assert tokenizer.decode(np.array([2, 6, 8, 4, 3])) == "[CLS] cats [MASK] [SEP]"


def test_an_id_outside_the_vocabulary_is_an_error():
    assert small().token(8) == "##s"
    for token_id in (-1, len(PIECES)):
        with pytest.raises(
            UserError, match=f"token id {token_id} is outside the vocabulary of {len(PIECES)}"
        ):
            small().token(token_id)


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "piece"),
    [(True, None, "e"), (True, False, "é"), (False, None, "É"), (False, True, "E")],
)
def test_a_bare_vocabulary_is_normalized_as_told(
    tmp_path: Path, lowercase: bool, strip_accents: bool | None, piece: str
):
    path = write_vocabulary(tmp_path / "vocab.txt")
    tokenizer = Tokenizer.load(path, lowercase, strip_accents)
    assert [PIECES[i] for i in tokenizer.encode("É")] == [piece]
    tokenizer.save(tmp_path / "saved")
    (tmp_path / "saved" / "tokenizer.json").unlink()  # what is left: vocab.txt and tokenizer_config.json
    assert Tokenizer.load(tmp_path / "saved").hash == tokenizer.hash


@pytest.mark.parametrize(
    ("post_processor", "same"),
    [
        (None, True),
        (processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), True),
        (processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)), False),
    ],
)
def test_the_hash_is_that_of_the_rows_however_they_are_written(
    tmp_path: Path, post_processor: processors.PostProcessor | None, same: bool
):
    small().save(tmp_path)
    backend = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    backend.post_processor = post_processor
    backend.save(str(tmp_path / "own.json"))
    tokenizer = Tokenizer.load(tmp_path / "own.json")
    assert (tokenizer.hash == small().hash, tokenizer.frame == small().frame) == (same, same)
    row = tokenizer.frame.row(tokenizer.encode("the"), tokenizer.encode("cat"))
    tokenizer.save(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text('{"model_type": "bert"}')
    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved")("the", "cat", return_token_type_ids=True)
    assert theirs["input_ids"] == row.ids
    assert sum(theirs["token_type_ids"]) == row.length - row.second_starts


def test_the_hash_tells_tokenizers_apart():
    assert small().hash == small().hash
    assert small(Normalization(lowercase=False)).hash != small().hash
    assert wordpiece([*PIECES, "new"]).hash != small().hash


def test_a_saved_tokenizer_is_the_same_in_every_form(tmp_path: Path, trained: Tokenizer):
    trained.save(tmp_path / "composing", model_max_length=128)
    for path in (tmp_path / "composing", tmp_path / "composing" / "tokenizer.json"):
        assert Tokenizer.load(path).hash == trained.hash
    bert = small(Normalization(strip_accents=True))
    bert.save(tmp_path / "bert", model_max_length=128)
    for path in (tmp_path / "bert", tmp_path / "bert" / "tokenizer.json", tmp_path / "bert" / "vocab.txt"):
        assert Tokenizer.load(path, strip_accents=True).hash == bert.hash


def test_a_line_separator_may_be_a_piece(tmp_path: Path):
    pieces = [*PIECES, "a\u2028b", "\x85", "last"]
    assert Tokenizer.load(write_vocabulary(tmp_path / "vocab.txt", pieces)).token(len(PIECES) + 2) == "last"
    (tmp_path / "crlf.txt").write_bytes("\r\n".join(PIECES).encode())
    assert Tokenizer.load(tmp_path / "crlf.txt").hash == small().hash


def test_transformers_gives_the_same_ids(tmp_path: Path, trained: Tokenizer, classics: list[str]):
    trained.save(tmp_path, model_max_length=128)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert (theirs.is_fast, theirs.model_max_length, theirs.vocab_size) == (True, 128, trained.vocab_size)
    hard = HARD.replace("[MASK]", "").replace("[SEP]", "")  # which they take for special tokens
    lines = [*classics, hard]
    expected = theirs(lines, add_special_tokens=False, verbose=False)["input_ids"]
    assert trained.encode_batch(lines) == expected
    pair = theirs("the cat", "a dog")
    a, b = trained.encode("the cat"), trained.encode("a dog")
    assert pair["input_ids"] == trained.frame.row(a, b).ids
    assert pair["token_type_ids"] == [0] * (len(a) + 2) + [1] * (len(b) + 1)


def test_a_tokenizer_that_transformers_saved_is_read(tmp_path: Path, trained: Tokenizer):
    trained.save(tmp_path / "ours")
    AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    assert Tokenizer.load(tmp_path / "theirs").encode(HARD) == trained.encode(HARD)


def test_a_run_folder_has_its_tokenizer_in_the_model(tmp_path: Path, trained: Tokenizer):
    trained.save(tmp_path / "run" / "model")
    assert Tokenizer.load(tmp_path / "run").encode(HARD) == trained.encode(HARD)


def test_a_vocabulary_without_special_tokens_is_an_error(tmp_path: Path):
    pieces = [piece for piece in PIECES if piece not in ("[MASK]", "[CLS]")]
    path = write_vocabulary(tmp_path / "vocab.txt", pieces)
    with pytest.raises(
        UserError, match=r"vocab.txt: the vocabulary lacks \[CLS\], \[MASK\]; a BERT vocabulary"
    ):
        Tokenizer.load(path)


def test_what_is_no_bert_tokenizer_is_an_error(tmp_path: Path):
    tokenizers.Tokenizer(tokenizers.models.BPE()).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match=r"tokenizer.json: a BPE tokenizer; BERT's is a WordPiece"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer.json: not a tokenizer.json of the tokenizers library"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"holds neither tokenizer.json nor vocab.txt"):
        Tokenizer.load(tmp_path)
    with pytest.raises(UserError, match=r"gone: no such tokenizer; expected a vocab.txt"):
        Tokenizer.load(tmp_path / "gone")


def test_a_damaged_vocabulary_is_an_error(tmp_path: Path):
    path = write_vocabulary(tmp_path / "vocab.txt", [*PIECES, "cat"])
    with pytest.raises(UserError, match=f"line {len(PIECES) + 1} repeats the piece 'cat' of line 7"):
        Tokenizer.load(path)
    path.write_bytes(b"[PAD]\n\xff\n")
    with pytest.raises(UserError, match=r"vocab.txt: not UTF-8 at byte 6"):
        Tokenizer.load(path)
    write_vocabulary(path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps([1]))
    with pytest.raises(UserError, match=r"tokenizer_config.json: expected a JSON object"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": "yes"}))
    with pytest.raises(UserError, match=r"do_lower_case: 'yes' is neither true, false nor null"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": None}))
    assert Tokenizer.load(tmp_path).lowercase


def test_a_tokenizer_json_of_impossible_ids_is_an_error(tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    small().save(tmp_path)
    saved = json.loads(path.read_text())
    vocabulary = saved["model"]["vocab"]
    saved["model"]["vocab"] = vocabulary | {"far": 2**31}
    path.write_text(json.dumps(saved))
    with pytest.raises(UserError, match=r"and with no other piece; 'far' has 2147483648"):
        Tokenizer.load(path)
    saved["model"] |= {"vocab": vocabulary, "unk_token": "[NONE]"}
    path.write_text(json.dumps(saved))
    with pytest.raises(UserError, match=r"the unknown token is '\[NONE\]'; BERT's is \[UNK\]"):
        Tokenizer.load(path)


def test_unk_that_is_only_registered_is_missing(tmp_path: Path) -> None:
    """WordPiece looks it up in its own vocabulary, where it would fail at the first unknown word."""
    pieces = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]"}'
    )
    with pytest.raises(UserError, match=r"the vocabulary lacks \[UNK\]"):
        Tokenizer.load(tmp_path)


def test_dropout_of_merges_is_off(tmp_path: Path):
    folder = make_tokenizer_folder("roberta", tmp_path)
    plain = Tokenizer.load(folder)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["dropout"] = 0.5
    (folder / "tokenizer.json").write_text(json.dumps(content))
    dropped = Tokenizer.load(folder)
    texts = ["the garden of the house"] * 20
    assert dropped.encode_batch(texts) == plain.encode_batch(texts)
    assert dropped.hash == plain.hash
