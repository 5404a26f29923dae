"""What is odd about a corpus is said, with its place."""

from __future__ import annotations

from pathlib import Path

from tests.advice.check.corpora import check, vocabulary
from tests.corpus.builds import make_config
from tests.decided import tokenizer_config


def test_what_spoils_a_corpus_is_named_with_its_place(folder: Path) -> None:
    text = "This is the first of the documents. It has what any text of its kind has in it."
    lines = [
        f"{text}\nThe same license stands in each, as it does in many a corpus.\nLine {number} of this."
        for number in range(30)
    ]
    lines += [lines[3], "A CafÃ© stood there. It was closed.", "Old\rMac. Lines.", "x" * 30_000]
    lines += ["Das ist nicht die Sprache, in der die anderen Texte sind, und es ist auch kein Zitat."]
    (folder / "spoilt.txt").write_text("\n\n".join(lines), newline="")
    tokenizer = tokenizer_config(path=str(vocabulary(folder)))
    config = make_config(folder, tokenizer, files=[str(folder / "spoilt.txt")])
    figures, findings = check(config)
    said = {finding.problem.partition(") ")[2] or finding.problem: finding for finding in findings}
    assert figures["repeated_documents"] == 1
    assert (figures["mojibake_lines"], figures["control_character_lines"], figures["long_lines"]) == (1, 1, 1)
    assert figures["other_language_lines"] == {"de": 1}
    assert 0 < figures["other_language_share"] < 0.1
    places = "\n".join(place for finding in said.values() for place in finding.places)
    assert f"{folder}/spoilt.txt, document 32: 'A CafÃ© stood there." in places
    assert f"{folder}/spoilt.txt, document 33: 'Old\\rMac. Lines.'" in places
    assert f"{folder}/spoilt.txt, document 2: 'The same license stands" in places
    assert f", as in {folder}/spoilt.txt, document 1; 30 such copies" in places
    assert not any(finding.fails for finding in findings)


def test_a_corpus_of_single_sentences_is_said_to_give_few_pairs(folder: Path) -> None:
    documents = [f"Post number {number} of many others." for number in range(200)]
    (folder / "posts.txt").write_text("\n\n".join([*documents, "One. Two.", "Three. Four."]))
    tokenizer = tokenizer_config(path=str(vocabulary(folder)))
    config = make_config(folder, tokenizer, files=[str(folder / "posts.txt")], heldout_fraction=0.05)
    problems = " ".join(finding.problem for finding in check(config).findings)
    assert "few places give a true pair (2)" in problems
    assert "every held-out document is one sentence long" in problems


def test_a_vocabulary_of_another_language_is_said(folder: Path) -> None:
    tokenizer = tokenizer_config(path=str(vocabulary(folder)))
    (folder / "ru.txt").write_text("\n\n".join(f"Дом {n} был мал. Но сад велик." for n in range(30)))
    config = make_config(folder, tokenizer, files=[str(folder / "ru.txt")], language="ru")
    problems = " ".join(finding.problem for finding in check(config).findings)
    assert "of the tokens are unknown" in problems
