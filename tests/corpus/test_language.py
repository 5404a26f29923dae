"""Telling a line in another language, and keeping still where it cannot be told."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

from bertcli.corpus.language import likely_language, other_language
from bertcli.samples import SAMPLES

LINES = {
    "en": "She had not seen the house for years, and all that was left of it was the garden.",
    "de": "Das Haus war nicht groß, aber es hatte einen Garten, in dem sie mit den Kindern saß.",
    "fr": "La maison n'était pas grande, mais elle avait un jardin dans lequel les enfants jouaient.",
    "es": "La casa no era grande, pero tenía un jardín en el que los niños jugaban con el perro.",
    "it": "La casa non era grande, ma aveva un giardino in cui i bambini giocavano con il cane della nonna.",
    "pt": "A casa não era grande, mas tinha um jardim em que as crianças brincavam com o cão da avó.",
    "nl": "Het huis was niet groot, maar het had een tuin waarin de kinderen met de hond speelden.",
    "sv": "Huset var inte stort, men det hade en trädgård där barnen lekte med hunden och en katt.",
    "fi": "Talo ei ollut suuri, mutta sen pihalla lapset leikkivät ja hän istui siellä kun oli kesä.",
    "pl": "Dom nie był duży, ale miał ogród, w którym dzieci bawiły się z psem i jego panem do wieczora.",
    "tr": "Ev büyük değil ama güzel bir bahçe var ve çocuklar için her zaman çok iyi bir yer.",
}


@pytest.mark.parametrize("written", LINES)
@pytest.mark.parametrize("expected", LINES)
def test_each_line_is_told_from_every_other_language(written: str, expected: str) -> None:
    assert other_language(LINES[written], expected) == ("" if written == expected else written)


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("Дом был небольшой, но при нём был сад, где играли дети и собака.", "ru"),
        ("房子不大，但是有一个花园，孩子们和祖母的狗在那里玩到很晚才回家。", "zh"),
        ("家は大きくなかったが、庭があって、子供たちはそこで犬と遊んでいた。", "ja"),
    ],
)
def test_a_line_of_another_script_is_told(line: str, language: str) -> None:
    assert other_language(line, "en") == language
    assert other_language(line, f"{language}-XX") == ""


def test_near_languages_are_not_told_apart() -> None:
    danish = "Huset var ikke stort, men det havde en have, hvor børnene legede med hunden hele dagen."
    assert other_language(danish, "nb") == ""
    assert other_language(danish, "sv") == "da"


@pytest.mark.parametrize(
    "line", ["Yes.", "1848 1849 1850 1851 1852 1853 1854 1855", "Le chat.", "!!! *** ---"]
)
def test_a_short_line_is_not_identified(line: str) -> None:
    assert other_language(line, "en") is None


def test_a_language_that_the_classifier_does_not_know_is_not_identified() -> None:
    assert other_language(LINES["en"], "tlh") is None


def test_english_prose_is_taken_for_english() -> None:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        found = [other_language(line, "en") for line in file.read().split("\n")[::10]]
    assert sum(bool(language) for language in found) < 0.004 * len(found)


def test_workers_that_examine_lines_do_not_load_the_classifier() -> None:
    modules = "sys, bertcli.advice.check.lines, bertcli.advice.check.corpus"
    code = f"import {modules}; print('py3langid' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_the_commonest_language_of_lines_is_found_with_its_share() -> None:
    lines = [LINES["de"]] * 3 + [LINES["fr"], "too short", "12 34 56"]
    code, share, number = likely_language(lines)
    assert (code, 0.7 < share < 0.85, number) == ("de", True, 4)
    assert likely_language(["no", "words"]) == (None, 0.0, 0)
    short = ["Merhaba arkadaşlar", "Çok güzel bir gün", "Işık söndü", "12 34"] * 2
    assert likely_language(short) == ("tr", 1.0, 4)  # the last two are too short


def test_a_share_is_one_of_the_text_not_of_the_lines() -> None:
    code, share, number = likely_language([LINES["de"]] * 9 + [" ".join([LINES["fr"]] * 50)])
    assert (code, share < 0.3, number) == ("de", True, 10)
