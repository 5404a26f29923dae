"""Training a vocabulary: deterministic, complete, and honest about what it cannot do."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest

from bertcli.families.family import TokenizerKind
from bertcli.system.errors import UserError
from bertcli.tokenizer import train as train_tokenizer_module
from bertcli.tokenizer.normalize import Material
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import Training, train_tokenizer
from bertcli.tokenizer.wordpiece import SPECIAL_TOKENS

TEXTS = ["the cat sat on the mat", "the cats sat, the mats sat", "a catalog of the Émigrés"] * 3


def pieces(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.token(i) for i in range(tokenizer.vocab_size)]


def test_special_tokens_come_first_then_characters_then_merges():
    found = pieces(train_tokenizer(TEXTS, 200))
    assert found[:5] == list(SPECIAL_TOKENS)
    singles = [piece for piece in found[5:] if len(piece.removeprefix("##")) == 1]
    assert found[5 : 5 + len(singles)] == singles
    plain = [piece for piece in singles if not (piece.startswith("##") and len(piece) > 2)]
    assert plain == sorted(plain)
    assert {"the", "cat", "sat"} <= set(found)
    assert "##," not in found  # a comma is always a word


def test_any_ascii_text_can_be_encoded():
    tokenizer = train_tokenizer(TEXTS, 200)
    text = "".join(map(chr, range(32, 127)))
    assert tokenizer.unk_id not in tokenizer.encode(text)


def test_case_and_accents_are_kept_on_request():
    assert "##é" not in pieces(train_tokenizer(TEXTS, 300, strip_accents=True))
    assert "##é" in pieces(train_tokenizer(TEXTS, 300))
    assert "É" in pieces(train_tokenizer(TEXTS, 300, lowercase=False))


LINES = {
    "Hindi": "हम बगीचे में घूमने गए, क़िला ज़मीन पर है।",
    "Thai": "ภาษาไทยนี้ไม่มีที่สิ้นสุด น้ำใจ",
    "German": "Die schöne Größe der Straße, ÄRGER und Übermut.",
    "Vietnamese": "Tiếng Việt rất ĐẸP, Ữ và Ợ.",
    "Arabic": "ذَهَبَ مُحَمَّدٌ إِلَى الْمَدْرَسَةِ؟",
    "Turkish": "İSTANBUL Iğdır, ŞİŞ",
    "Korean": "한국어 텍스트",
    "letters composed in small ones alone": "J\u030c Ϊ\u0301",
}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("language", LINES)
def test_nothing_is_stripped_from_a_line(language: str, form: Literal["NFC", "NFD"]):
    line = unicodedata.normalize(form, LINES[language])
    tokenizer = train_tokenizer([line], 300)
    read = "".join(tokenizer.token(i).removeprefix("##") for i in tokenizer.encode(line))
    small = unicodedata.normalize("NFC", unicodedata.normalize("NFC", line).replace("İ", "i").lower())
    assert read == small.replace(" ", "")
    assert tokenizer.cut(line) == line.split(" ")
    other = unicodedata.normalize("NFD" if form == "NFC" else "NFC", line)
    assert tokenizer.encode(other) == tokenizer.encode(line)


def test_a_short_text_gives_fewer_entries():
    tokenizer = train_tokenizer(TEXTS, 5000)
    assert 100 < tokenizer.vocab_size < 300


def test_a_size_below_the_alphabet_names_the_smallest():
    with pytest.raises(
        UserError, match=r"of 20 entries is too small .* Set tokenizer.vocab_size to (\d+) or"
    ) as e:
        train_tokenizer(TEXTS, 20)
    smallest = int(str(e.value).rpartition(" to ")[2].split()[0].replace(",", ""))
    assert train_tokenizer(TEXTS, smallest).vocab_size == smallest
    with pytest.raises(UserError, match="too small"):
        train_tokenizer(TEXTS, smallest - 1)


def test_a_large_alphabet_keeps_the_commonest_characters():
    rare = "".join(chr(0x4E00 + i) for i in range(1500))
    found = set(pieces(train_tokenizer([rare, *["一二三"] * 5, "the end"], 1400)))
    assert {"一", "二", "三", "t"} <= found
    assert 1000 < sum("\u4e00" <= piece <= "\u9fff" for piece in found) < 1400
    assert "##一" not in found


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_free_entries_are_filled_with_further_characters(kind: TokenizerKind):
    kanji = [chr(0x4E00 + i) for i in range(2500)]
    lines = ["".join(kanji[i : i + 25]) for i in range(0, 2500, 25)]
    tokenizer = train_tokenizer([*lines, "".join(kanji[1400:2000])], 1500, kind=kind)
    assert tokenizer.vocab_size == 1500
    assert tokenizer.unk_id not in tokenizer.encode("".join(kanji[1400:1700]))
    if kind == "wordpiece":
        assert len({*kanji} & {*pieces(tokenizer)}) > 1300


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "unigram"])
def test_a_word_of_a_million_letters_is_counted_in_parts(
    kind: TokenizerKind, monkeypatch: pytest.MonkeyPatch
):
    seen: list[int] = []
    module = {"wordpiece": "train_wordpiece", "byte-bpe": "train_byte_bpe", "unigram": "train_unigram"}[kind]
    train = getattr(train_tokenizer_module, module)

    def watched(material: Material) -> Any:
        def watch() -> Iterator[str]:
            for line in material.lines:
                seen.extend(map(len, line.split()))
                yield "a few words"

        return train(replace(material, lines=watch()))

    monkeypatch.setattr(train_tokenizer_module, module, watched)
    train_tokenizer(["ACGT" * 250_000, "a few words"] * 2, 400, kind=kind)
    assert max(seen) == 1000
    assert sum(seen) > 2_000_000


def test_training_says_how_long_it_has_taken_and_ends_at_once_on_ctrl_c(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(train_tokenizer_module, "BETWEEN_LINES", 0.0)
    released = threading.Event()

    def never_ends(*given: Any, **named: Any) -> Any:
        released.wait()

    def interrupt(line: str) -> None:
        assert line.startswith("training the vocabulary: ")
        raise KeyboardInterrupt

    monkeypatch.setattr(train_tokenizer_module, "train_wordpiece", never_ends)
    with pytest.raises(KeyboardInterrupt):
        train_tokenizer(TEXTS, 200, training=Training(report=interrupt))
    released.set()


@pytest.mark.parametrize("size", [2**24 + 1, 10**9, 2**63, 10**30])
def test_a_size_beyond_what_is_supported_is_refused_before_anything_is_read(size: int):
    with pytest.raises(UserError, match=r"is too large; 16,777,216 at most"):
        train_tokenizer(iter([]), size)


@pytest.mark.parametrize("texts", [[], ["", " \n\t"], ["\ufffd\x00"]])
def test_no_text_is_an_error(texts: list[str]):
    with pytest.raises(UserError, match="there is no text to train a vocabulary on"):
        train_tokenizer(texts, 100)
