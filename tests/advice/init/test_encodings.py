"""A legacy encoding is told from the language that can be read in it."""

from __future__ import annotations

import pytest

from bertcli.advice.init.kinds import detect_encoding

GERMAN = (
    "Die Straße führt über den Fluß und die Brücke hinüber zum schönen Schloß.\n"
    "Äpfel und Birnen wachsen in den Gärten der Bürger, die früh aufstehen.\n"
)
FRENCH = "L'été dernier, nous avons traversé la forêt près de la rivière gelée, à côté du château.\n"
POLISH = "Wczoraj wieczorem poszliśmy na spacer wzdłuż rzeki i zobaczyliśmy łabędzie. Żółta łódź płynęła.\n"
CZECH = "Včera večer jsme šli na procházku podél řeky a viděli jsme labutě. Žlutá loď plula pomalu.\n"
TURKISH = "Dün akşam nehir boyunca yürüdük ve kuğular gördük. Çocuklar kıyıda yüksek sesle gülüyordu.\n"
RUSSIAN = "Вчера вечером мы гуляли вдоль реки и видели лебедей на воде. Жёлтая лодка плыла медленно.\n"
GREEK = "Χθες το βράδυ περπατήσαμε κατά μήκος του ποταμού και είδαμε κύκνους.\n"
SIMPLIFIED = "昨天晚上我们沿着河边散步，看见了水上的天鹅。上海的天气很好，孩子们在岸边大声地笑着。\n"
TRADITIONAL = "昨天晚上我們沿著河邊散步，看見了水上的天鵝。上海的天氣很好，孩子們在岸邊大聲地笑著。\n"
JAPANESE = "昨日の夜、私たちは川に沿って散歩をして、水の上の白鳥を見ました。黄色い船は進みました。\n"
KOREAN = "어제 저녁에 우리는 강을 따라 산책을 하면서 물 위의 백조를 보았습니다. 노란 배는 움직였고.\n"
QUOTES = "It’s a café — “they said” — where the naïve visitors don’t pay for their drinks.\n"


LEGACY = [
    (GERMAN, "cp1252"),
    (FRENCH, "cp1252"),
    (QUOTES, "cp1252"),
    (POLISH, "cp1250"),
    (CZECH, "cp1250"),
    (TURKISH, "cp1254"),
    (RUSSIAN, "cp1251"),
    (RUSSIAN, "koi8-r"),
    (RUSSIAN, "cp866"),
    (GREEK, "cp1253"),
    (SIMPLIFIED, "gb18030"),
    (TRADITIONAL, "big5"),
    (JAPANESE, "shift_jis"),
    (JAPANESE, "euc_jp"),
    (KOREAN, "cp949"),
    (RUSSIAN, "utf-16"),
    (GERMAN, "utf-16-le"),
]
"""Texts with encodings in which they may be found."""


@pytest.mark.parametrize(("text", "encoding"), LEGACY)
def test_a_legacy_encoding_is_found_with_its_proof(text: str, encoding: str) -> None:
    found = detect_encoding(text.encode(encoding))
    assert found is not None
    assert found.name == encoding
    assert found.proof


@pytest.mark.parametrize(
    ("text", "encoding", "bad"),
    [
        (RUSSIAN, "cp1251", b"\x98"),
        (GERMAN, "cp1252", b"\x81"),
        (JAPANESE, "shift_jis", b"\xfd\xfd"),
        (JAPANESE, "euc_jp", b"\xff"),
        (SIMPLIFIED, "gb18030", b"\xff"),
    ],
)
def test_one_bad_byte_changes_no_encoding(text: str, encoding: str, bad: bytes) -> None:
    lines = (text * 20).encode(encoding).splitlines()
    lines[7] = bad + lines[7]
    found = detect_encoding(b"\n".join(lines))
    assert found is not None
    assert found.name == encoding


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "ascii"])
def test_utf_8_needs_no_proof(encoding: str) -> None:
    text = "plain text\n" if encoding == "ascii" else SIMPLIFIED
    assert detect_encoding(text.encode(encoding)) == ("utf-8", "")


def test_the_proof_shows_the_byte_and_the_text_around_it() -> None:
    found = detect_encoding(GERMAN.encode("cp1252"))
    assert found is not None
    assert "byte 8 (0xdf) is not UTF-8; in cp1252 the text there is 'Die Straße" in found.proof


def test_a_character_that_the_end_cuts_is_no_wrong_byte() -> None:
    assert detect_encoding((SIMPLIFIED * 3).encode()[:-2]) == ("utf-8", "")


def test_control_characters_are_no_text() -> None:
    assert detect_encoding(bytes(range(256)) * 10) is None


def test_bytes_of_no_known_language_are_taken_as_cp1252() -> None:
    found = detect_encoding(b"12 \xe9 34\n")
    assert found is not None
    assert found.name == "cp1252"
