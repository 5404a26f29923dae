"""Scripts by kinds of new vocabularies: pieces give their text back, and transformers reads the same."""

from __future__ import annotations

import base64
import random
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import transformers

from bertcli.families.family import TokenizerKind
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import Training, train_tokenizer
from bertcli.tokenizer.word_cache import WordCache

KINDS: tuple[TokenizerKind, ...] = ("wordpiece", "byte-bpe", "unigram")
ZWSP = "\u200b"
_random = random.Random(5)
TEXTS = {
    "en": "It was a dark night: “Don't!”, she said (twice), naïve café ﬁne ½.",
    "de": "Die schöne Größe der Straße, ÄRGER und Übermut.",
    "el": "Ο ΟΔΥΣΣΕΑΣ είδε τους ΔΡΌΜΟΥΣ. ΣΑΣ, σας! Σ",
    "tr": "Iğdır ve ISPARTA ile İstanbul, İZMİR'E IŞIK.",
    "az": "İlham QARABAĞ ILIQ ıldırım çiçək",
    "lt": "Ìšėjo, J\u0301 ir Į\u0303 ŽĖ",
    "vi": "Tiếng Việt rất ĐẸP, Ữ và Ợ.",
    "ru": "Съешь же ещё этих мягких ЙОГУРТОВ",
    "fa": "او می\u200cرود و کتاب\u200cها را می\u200cخواند.",
    "ar": "ذَهَبَ مُحَمَّدٌ إِلَى الْمَدْرَسَةِ؟ سورة ۝٢",
    "ur": "یہ کتاب بہت اچھی ہے۔ ﷺ",
    "he": "שָׁלוֹם עולם, צה״ל",
    "hi": "हम बगीचे में घूमने गए, क़िला ज़मीन पर है। क\u094d\u200dष",
    "si": "ශ්\u200dරී ලංකාව ක්\u200dරිකට්",
    "ml": "അവന്\u200d വന്നു, ന്\u200dറെ",
    "bn": "আমি র\u200d্যাব দেখি।",
    "th": "ภาษาไทยนี้ไม่มีที่สิ้นสุดน้ำใจ ทำ",
    "lo": "ພາສາລາວນ້ຳ",
    "km": f"ខ្ញុំ{ZWSP}ទៅ{ZWSP}ផ្សារ{ZWSP}ជា{ZWSP}មួយ{ZWSP}ម្តាយ។ {ZWSP}ទិញ{ZWSP}",
    "my": "မြန်မာစာ ရန်ကုန်",
    "zh": "今天天气很好，我们去公园散步。ＡＢＣ",
    "ja": "日本語のテキスト、カ\u3099とガ。東京都",
    "ko": "한국어 텍스트입니다",
    "mn": "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ᠎ᠡ",
    "emoji": "a family 👨\u200d👩\u200d👧 🏳️\u200d🌈 👍🏽 "
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 🫠🥲 🇫🇷",
    "code": "def f(x): return {'a': x**2, \"b\": [1, 2]}  # µ ▁ \tif x != y && !z",
    "logs": "2024-01-02T03:04:05Z [ERROR] host=10.0.0.1 id=deadBEEF /var/log/x.log 0xFF",
    "dna": "".join(_random.choices("ACGT", k=90)) + " GATTACA",
    "base64": base64.b64encode(_random.randbytes(60)).decode(),
}
"""Code of the language, or what it is."""
SMALL = {
    "tr": "ığdır ve ısparta ile istanbul, izmir'e ışık.",
    "az": "ilham qarabağ ılıq ıldırım çiçək",
    "lt": "i\u0307\u0300šėjo, j\u0307\u0301 ir į\u0307\u0303 žė",
    "el": "ο οδυσσεας είδε τους δρόμους. σας, σας! σ",
}


@cache
def trained(text: str, kind: TokenizerKind, language: str, lowercase: bool = True) -> Tokenizer:
    training = Training(language if len(language) == 2 else "en")
    return train_tokenizer([text] * 4, 700, lowercase, kind=kind, training=training)


def given_back(tokenizer: Tokenizer, text: str) -> str:
    """The pieces of a text, joined."""
    tokens = [tokenizer.token(i) for i in tokenizer.encode(text)]
    return tokenizer.join(tokens)


@pytest.mark.parametrize("lowercase", [True, False], ids=["small", "cased"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", TEXTS)
def test_joined_pieces_give_the_text_back(language: str, kind: TokenizerKind, lowercase: bool) -> None:
    text = TEXTS[language]
    tokenizer = trained(text, kind, language, lowercase)
    expected = text
    if lowercase:
        expected = SMALL.get(language, text.lower())
    expected = unicodedata.normalize("NFC", expected).replace(ZWSP, " ")
    if kind == "unigram":
        expected = expected.replace("▁", " ")
    for written in (text, unicodedata.normalize("NFD", text)):
        assert tokenizer.unk_id not in tokenizer.encode(written)
        back = given_back(tokenizer, written)
        if kind != "wordpiece":  # which divides punctuation, too
            assert back.split() == expected.split()
        assert "".join(back.split()) == "".join(expected.split())


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_and_the_cache_of_words_read_the_saved_folder_to_the_same_ids(
    tmp_path: Path, kind: TokenizerKind
) -> None:
    for language, text in TEXTS.items():
        folder = tmp_path / language
        tokenizer = trained(text, kind, language)
        tokenizer.save(folder)
        texts = [text, *TEXTS.values()]
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        ours = tokenizer.encode_batch(texts)
        assert type(theirs) is transformers.PreTrainedTokenizerFast
        assert tokenizer.other_classes("bert") == ["BertTokenizer", "BertTokenizerFast"]
        assert theirs(texts, add_special_tokens=False)["input_ids"] == ours
        assert WordCache(tokenizer).encode(texts).ids.tolist() == [i for ids in ours for i in ids]


@pytest.mark.parametrize("kind", KINDS)
def test_a_joiner_is_inside_a_word_and_a_zero_width_space_between_two(kind: TokenizerKind) -> None:
    joined, divided = "می\u200cرود", "ខ្ញុំ\u200bទៅ"
    tokenizer = train_tokenizer([joined, divided.replace(ZWSP, " ")] * 9, 700, kind=kind)
    assert tokenizer.encode(divided) == tokenizer.encode(divided.replace(ZWSP, " "))
    apart = (joined.replace("\u200c", " "), joined.replace("\u200c", ""))
    assert tokenizer.encode(joined) not in map(tokenizer.encode, apart)


@pytest.mark.parametrize("language", ["en", "de", "tr", "az", "crh", "fr"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_dotted_capital_never_becomes_two_characters(kind: TokenizerKind, language: str) -> None:
    tokenizer = trained("İSTANBUL I\u0307zmir", kind, language)
    assert "\u0307" not in given_back(tokenizer, "İSTANBUL I\u0307zmir")
    assert given_back(tokenizer, "İ") == "i"


@pytest.mark.parametrize(("language", "is_said"), [("en", True), ("tr", False), ("az", False)])
def test_a_text_with_dotless_letters_that_is_said_to_be_in_another_language_is_told(
    language: str, is_said: bool
) -> None:
    said: list[str] = []
    for text in (SMALL["tr"], f"{TEXTS['en']} {'it is ' * 9} Işık"):  # the other has a name
        train_tokenizer([text] * 4, 700, training=Training(language, report=said.append))
    assert [line.startswith("note: the text has the letter ı") for line in said] == [True] * is_said
