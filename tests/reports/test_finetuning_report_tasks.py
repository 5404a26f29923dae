"""Reports of each task: its scores, its mistakes, and its texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.reports.runs import ATTACK, ATTACKS, labeled, questions, report, table


def test_regression_shows_points_and_the_largest_errors(tmp_path: Path) -> None:
    rows = [["text", "score"], *([f"message {n} {ATTACKS}", n * n] for n in range(40))]
    task = {"type": "regression", "text": "text", "label": "score"}
    found = report(labeled(tmp_path, task, "r.csv", table(rows)), attributions=True)
    assert len(found.named("circle")) == 40
    text = found.text("mistakes")
    assert text.startswith("Largest errors")
    first = text.split("r.csv, line")[0]
    assert "message 0 " in first or "message 39 " in first  # the farthest from the mean
    assert "lowest value" in found.text("data")
    assert "what each word adds to the value, against the same row with a mask for every word" in text
    assert "logit" not in text


def test_entities_are_marked_in_their_sentence(tmp_path: Path) -> None:
    sentence = "John B-PER\nSmith I-PER\nsaw O\n<b>Rome</b> B-LOC\n. O\n\n"
    found = report(labeled(tmp_path, {"type": "token-classification"}, "ner.conll", sentence * 12))
    text = found.text("mistakes")
    legend, _, sentences = text.partition(" other type or ends ")
    assert legend.endswith(" found missed not there")
    names = {"right": "missed: ", "given": "not there: ", "other": "other type or ends: "}
    marks = [str(each.get("class")) for each in found.named("mark")][len(names) + 1 :]
    assert set(marks) & set(names)
    assert all(name in sentences for kind, name in names.items() if kind in marks)
    assert "<b>Rome</b>" in text
    assert "Types type precision recall" in found.text("answers")


def test_answers_are_marked_in_their_context(tmp_path: Path) -> None:
    context = f"{'The way was long. ' * 30}It stands by the <i>river</i>. {'It rained. ' * 30}"
    asked = [("Where is it?", "by the <i>river</i>"), ("Where is it?", "It stands")] * 4
    task = {"type": "question-answering", "max_length": 64, "doc_stride": 16}
    found = report(labeled(tmp_path, task, "q.json", questions(context, asked)))
    text = found.text("mistakes")
    legend, _, contexts = text.partition(" right and given ")
    assert legend.endswith(" right given")
    assert "right: " in contexts or "right and given: " in contexts
    assert "by the <i>river</i>" in text
    assert text.count("It rained.") < 8 * 30  # excerpts, not contexts


def test_choices_stand_under_their_text(tmp_path: Path) -> None:
    rows = [["story", "one", "two", "right"], *([f"story {n}", "yes", ATTACK, n % 2] for n in range(20))]
    task = {"type": "multiple-choice", "text": "story", "choices": ["one", "two"], "label": "right"}
    found = report(labeled(tmp_path, task, "c.csv", table(rows)))
    text = found.text("mistakes")
    assert "choice 0" in text
    assert ATTACK in text
    assert {each.get("class") for each in found.named("mark")} >= {"right", "given"}


def similar(number: int) -> list[str]:
    """Two texts with nothing in common, so that their vectors are not near, and a third."""
    return [f"anchor {number} {ATTACK}", f"{number * 7} other <b>words</b>", f"{number} wrong"]


@pytest.mark.parametrize("columns", [["a", "b"], ["a", "b", "c"]])
def test_a_pair_of_texts_has_its_rank_beside_the_text_that_is_nearer(
    tmp_path: Path, columns: list[str]
) -> None:
    rows = [["a", "b", "c"], *map(similar, range(24))]
    task = {"type": "sentence-embedding", "text": columns}
    found = report(labeled(tmp_path, task, "pairs.csv", table(rows)), attributions=True)
    scores, text = found.text("scores"), found.text("mistakes")
    assert "1 / rank of an anchor's positive among all texts, averaged; the best model is chosen" in scores
    for meaning in ("to which no other text is nearer", "among the 10 nearest texts"):
        assert meaning in scores
    assert "rows are not in their place, the worst first." in text
    candidates = 24 * (len(columns) - 1)
    shown = text.split("the worst first.")[1]
    ranks = [int(each) for each in re.findall(rf"(\d+) of {candidates}\b", shown)]
    assert ranks == sorted(ranks, reverse=True)
    assert len(ranks) == int(text.split(" of 24 rows")[0].split()[-1]) > 0
    assert shown.count("nearest ") == len(ranks)
    assert ATTACK in text
    assert {each.get("class") for each in found.named("mark")} >= {"right", "given"}


def test_a_pair_with_a_score_has_it_beside_its_cosine(tmp_path: Path) -> None:
    rows = [["a", "b", "score"], *([*similar(n)[:2], n % 6] for n in range(24))]
    task = {"type": "sentence-embedding", "text": ["a", "b"], "label": "score"}
    text = report(labeled(tmp_path, task, "pairs.csv", table(rows))).text("mistakes")
    shares = [float(each) for each in re.findall(r"off by ([\d.]+)%", text)]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == int(text.split(" of 24 rows")[0].split()[-1]) > 0
    assert min(shares) >= 25


def test_plain_text_has_no_mistakes(tmp_path: Path) -> None:
    task = {"type": "sentence-embedding", "dev": None}
    lines = "".join(f"line {n}\n" for n in range(24))
    found = report(labeled(tmp_path, task, "lines.txt", lines))
    assert "None, because there was no dev data" in found.head
    assert "mistakes" not in found.texts


def test_sets_of_labels_have_no_matrix(tmp_path: Path) -> None:
    rows = [["text", "labels"], *([f"text {n}", "red,blue" if n % 3 else ""] for n in range(24))]
    task = {"type": "classification", "text": "text", "label": "labels", "multi_label": True}
    found = report(labeled(tmp_path, task, "m.csv", table(rows)))
    assert "Confusions" not in found.text("answers")
    assert "(none)" in found.text("mistakes")
