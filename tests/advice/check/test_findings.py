"""What is found is said in order, with place and remedy."""

from __future__ import annotations

from bertcli.advice.check.findings import Places, excerpt, findings_json, findings_text
from bertcli.system.errors import Finding

FINDINGS = [
    Finding("a few lines", "mend them", ("a.txt: 'x'",), share=0.1),
    Finding("a file is broken", share=0.01, fails=True),
    Finding("many lines", "mend them", share=0.5),
]


def test_the_worst_comes_first() -> None:
    assert findings_text(FINDINGS) == (
        "what to mend, the worst first:\n"
        "1. the run would fail: a file is broken\n"
        "2. warning: many lines\n"
        "   mend them\n"
        "3. warning: a few lines\n"
        "     a.txt: 'x'\n"
        "   mend them"
    )
    values = findings_json(FINDINGS)
    assert values["would_fail"]
    assert [each["share"] for each in values["findings"]] == [0.01, 0.5, 0.1]


def test_nothing_found_is_said_too() -> None:
    assert findings_text([]) == "nothing to mend"
    assert findings_json([]) == {"would_fail": False, "findings": []}


def test_the_first_places_are_kept_and_all_counted() -> None:
    places = Places()
    places.add(2, ["a", "b"])
    places.add(4, ["c", "d"])
    assert (places.count, places.first) == (6, ["a", "b", "c"])


def test_an_excerpt_shows_what_stands_around_a_place() -> None:
    assert excerpt("short\r") == r"'short\r'"
    text = f"{'a' * 100}X{'b' * 100}"
    assert excerpt(text, 100) == f"'...{'a' * 30}X{'b' * 29}...'"
    assert excerpt(text, 200) == f"'...{'b' * 60}'"
