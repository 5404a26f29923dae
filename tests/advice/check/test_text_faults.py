"""What is wrong with a line's characters, and what is not."""

from __future__ import annotations

import pytest

from bertcli.advice.check.lines import LONG_LINE, find_faults


@pytest.mark.parametrize(
    "text", ["café", "it’s", "“so”", "a—b", "naïve", "Dvořák", "Łódź", "Привет", "你好", "a\u00a0b"]
)
@pytest.mark.parametrize("wrong", ["cp1252", "latin-1"])
def test_utf8_read_as_another_encoding_is_mojibake(text: str, wrong: str) -> None:
    try:
        read = text.encode().decode(wrong)
    except UnicodeDecodeError:  # a byte that cp1252 has not
        read = text.encode().decode("latin-1")
    assert [fault for fault, _ in find_faults(f"before {read} after")][:1] == ["mojibake"]


def test_a_lost_byte_and_cp1252_read_as_latin_1_are_mojibake() -> None:
    assert list(find_faults("Sch\ufffdn")) == [("mojibake", 3)]
    assert list(find_faults("DON\x92T")) == [("mojibake", 3)]


@pytest.mark.parametrize(
    "text",
    [
        *("„Daß“ und „groß“ …", "« CAFÉ»", "“JÖ”", "SÅ”", "â", "São Paulo…", "Ø, Å, Ä…", "Привет, «мир»…"),
        *("你好，“世界”", "soft\u00adhyphen", "no\u00a0break", "À “la” carte", "tab\there", "été—là"),
    ],
)
def test_right_text_is_left_alone(text: str) -> None:
    assert list(find_faults(text)) == []


def test_control_characters_and_long_lines_are_found() -> None:
    assert list(find_faults("old Mac\rline")) == [("control", 7)]
    assert list(find_faults("page\x0c")) == [("control", 4)]
    assert list(find_faults("x" * (LONG_LINE + 1))) == [("long", 0)]
    assert list(find_faults("x" * LONG_LINE)) == []
    assert [fault for fault, _ in find_faults("Ã©\0")] == ["mojibake", "control"]
