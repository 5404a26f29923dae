"""Training a vocabulary: deterministic, complete, and honest about what it cannot do."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from typing import Literal

import pytest

from bertcli.errors import UserError
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.train_tokenizer import train_tokenizer
from bertcli.text.wordpiece import SPECIAL_TOKENS

TEXTS = ["the cat sat on the mat", "the cats sat, the mats sat", "a catalog of the Émigrés"] * 3
TRAIN_ON_CLASSICS = """
import gzip
from bertcli.samples import SAMPLES
from bertcli.text.train_tokenizer import train_tokenizer
with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
    print(train_tokenizer(file.read().split("\\n")[:1500], 3000, lowercase=False).hash)
"""


def pieces(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.token(i) for i in range(tokenizer.vocab_size)]


def test_separate_processes_train_the_same_vocabulary():
    runs = [
        subprocess.Popen([sys.executable, "-c", TRAIN_ON_CLASSICS], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    hashes = [run.communicate()[0] for run in runs]
    assert len(set(hashes)) == 1
    assert len(hashes[0].strip()) == 64


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
    small = unicodedata.normalize("NFC", line.lower())
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
    found = set(pieces(train_tokenizer([rare, *["一二三"] * 5, "the end"], 4000)))
    assert {"一", "二", "三", "t"} <= found
    assert sum("\u4e00" <= piece <= "\u9fff" for piece in found) <= 1000
    assert "##一" not in found


@pytest.mark.parametrize("texts", [[], ["", " \n\t"], ["\ufffd\x00"]])
def test_no_text_is_an_error(texts: list[str]):
    with pytest.raises(UserError, match="there is no text to train a vocabulary on"):
        train_tokenizer(texts, 100)
