"""The page at `/`: the fields of each model, answers, and what explains them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import bertcli
from bertcli.folders.task_folder import load_task_folder
from bertcli.inference.attributions import attribute, decide
from bertcli.inference.inputs import example_of
from bertcli.inference.predict import runner_of
from bertcli.inference.serve import page
from bertcli.reports.attention import scored_words
from bertcli.system.terminal import percent
from bertcli.tasks.supervised import CPU
from tests.inference.serve.serving import Client, Reply, opened, serving
from tests.reports.test_page import Elements

ROWS: dict[str, dict[str, Any]] = {
    "multi-label": {"text": "The cat sat on the mat."},
    "classification": {"text": ["The cat.", "A dog."]},
    "regression": {"text": ["The cat.", "A dog."]},
    "tokens": {"text": "The cat sat on it ."},
    "questions": {"text": ["Who sat?", "The cat sat."]},
    "choices": {"text": "It was", "lines": "dark\r\n\r\nhe\nthe night"},
}
SIMILAR = {"text": "the cat", "lines": "a dog\nthe cat\nit was dark"}


def asked(client: Client, **fields: Any) -> Reply:
    """The answer to a form that a browser sends."""
    body = urlencode(fields, doseq=True).encode()
    return client.request("POST", page.PATH, body, Content_Type="application/x-www-form-urlencoded")


def part(client: Client, name: str, **fields: Any) -> str:
    """A part of the page, as its script asks for it."""
    reply = asked(client, part=name, **fields)
    assert reply.status == 200, reply.body
    return reply.body.decode()


def plain(html: str) -> str:
    """The text of HTML, without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


@pytest.mark.parametrize(
    ("query", "fields", "parts"),
    [
        ("", ["text"], ["why", "attention"]),
        ("model=classification", ["premise", "hypothesis"], ["why", "attention"]),
        ("model=regression", ["a", "b"], ["why", "attention"]),
        ("model=tokens", ["text"], ["why", "attention"]),
        ("model=questions", ["question", "context"], ["why", "attention"]),
        ("model=choices", ["story", "choices one a line"], ["why", "attention"]),
        ("model=words", ["text with [MASK] for each word that the model shall find"], ["attention"]),
        ("model=words&form=similarity", ["query", "texts one a line"], ["attention"]),
        ("model=vectors&form=fill-mask", ["query", "texts one a line"], ["attention"]),
    ],
)
def test_the_fields_fit_the_model(client: Client, query: str, fields: list[str], parts: list[str]) -> None:
    reply = client.get(f"/?{query}")
    document = reply.body.decode()
    assert reply.status == 200
    labels = re.findall(r'<label for="field-\d">(.*?)</label>', document)
    assert [plain(each).strip() for each in labels] == fields
    elements = Elements(document)
    assert [each["value"] for each in elements.named("input") if each.get("name") == "show"] == parts
    assert len(elements.named("textarea")) == len(fields)
    assert len([each for each in elements.named("a") if "model=" in (each.get("href") or "")]) == 9


@pytest.mark.parametrize("kind", ROWS)
def test_a_prediction_is_that_of_the_command_in_words_and_marks(
    client: Client, folders: Path, kind: str
) -> None:
    given = ROWS[kind]
    texts = given["text"] if isinstance(given["text"], list) else [given["text"]]
    row = [*texts, *given.get("lines", "").split()[:2], *(["the night"] if "lines" in given else [])]
    (expected,) = bertcli.load(folders / kind).predict([row if len(row) > 1 else row[0]])
    html = part(client, "answer", model=kind, **given)
    said = plain(html)
    probabilities = expected.get("probabilities", {})
    if isinstance(probabilities, list):
        probabilities = dict(zip(row[1:], probabilities, strict=True))
    for name, share in probabilities.items():
        assert f"{name} {percent(share)}" in said
    for entity in expected.get("entities", ()):
        assert f"found: {entity['text']} {entity['type']} {percent(entity['score'])}" in said
    if kind == "regression":
        assert f"{expected['value']:.4f}" in said
    if kind == "questions":
        assert f'<mark class="both"><span class="unseen">found: </span>{expected["answer"]}</mark>' in html
    if kind == "choices":
        assert f"<strong>{row[1 + expected['choice']]}</strong>" in html


def test_masks_are_filled_and_texts_put_in_order(client: Client, folders: Path) -> None:
    html = part(client, "answer", model="words", text="The [MASK] sat on a [MASK].")
    body = {"model": "words", "texts": "The [MASK] sat on a [MASK].", "top_k": page.TOP_K}
    (expected,) = client.post("/v1/bertcli/fill-mask", body).json
    assert f"<strong>{expected['filled']}</strong>" in html
    assert [plain(each) for each in re.findall("<caption>.*?</caption>", html)] == [" Mask 1 ", " Mask 2 "]
    for each in (one for mask in expected["masks"] for one in mask["predictions"]):
        assert f"{each['token']} {percent(each['probability'])}" in plain(html)
    similar = part(client, "answer", model="vectors", form="similarity", **SIMILAR)
    body = {"model": "vectors", "queries": SIMILAR["text"], "texts": SIMILAR["lines"].split("\n")}
    expected = client.post("/v1/bertcli/similarity", body).json
    names = re.findall(
        '<th class="text" scope="row"><bdi>(.*?)</bdi></th><td class="number">(.*?)</td>', similar
    )
    assert names == [(each["text"], f"{each['similarity']:.3f}") for each in expected]
    note = "only the order of the cosines has a meaning"
    assert note not in similar
    assert note in part(client, "answer", model="words", form="similarity", **SIMILAR)


@pytest.mark.parametrize("engine", ["bertcli", "onnxruntime"])
@pytest.mark.parametrize("kind", ["multi-label", "questions", "choices"])
def test_the_words_that_decided_are_those_of_the_command(folders: Path, kind: str, engine: Any) -> None:
    """An engine without gradients has the weights beside it."""
    (served,) = opened(folders, kind)
    runner = runner_of(load_task_folder(folders / kind), CPU)
    given = ROWS[kind]
    texts = given["text"] if isinstance(given["text"], list) else [given["text"]]
    lines = [each for each in given.get("lines", "").splitlines() if each]
    example = example_of([*texts, *lines], "", runner.task.settings)
    (example,) = runner.task.at_words([example], runner.task.settings, runner.tokenizer)
    expected = attribute(runner, decide(runner, example))
    with serving([replace(served, engine=engine)]) as client:
        html = part(client, "why", **given)
        scores = re.findall(
            r'class="scored (\w+)"><span class="l(\d)">(.*?)</span><small>(.*?)</small>', html
        )
        assert scores == [
            ("for" if word.is_for else "against", str(word.level), word.text, word.score)
            for word in scored_words(expected)
        ]
        assert f'<strong dir="auto">{expected.answer}</strong>' in html
        assert 'id="data"' in part(client, "attention", **given)


def test_what_a_mask_attends_to_is_shown(client: Client) -> None:
    html = part(client, "attention", model="words", text="The [MASK] sat on a cat.")
    (data,) = re.findall('<script type="application/json" id="data">(.*?)</script>', html)
    assert re.findall('"text": "(.*?)"', data) == [
        "[CLS]",
        "The",
        "[MASK]",
        "sat",
        "on",
        "a",
        "cat",
        ".",
        "[SEP]",
    ]
    assert "5 heads each" in html
    similar = part(client, "attention", model="vectors", **SIMILAR)
    assert "the cat" not in plain(similar)
    assert '"text": "cat"' in similar
    assert (
        asked(client, part="attention", model="vectors", lines="a cat").status == 200
    )  # no query is an empty one


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"model": "multi-label", "text": "the cat " * 40}, "shown for up to 64 tokens, and here are 82"),
        ({"model": "tokens", "text": "the cat " * 40}, "shown for up to 64 tokens, and here are 82"),
        ({"model": "choices", "text": "a", "lines": "a\n" * 17}, "shown for up to 16 rows, and here are 17"),
        ({"model": "tokens", "text": "\x01"}, "the text has no token to be tagged by"),
    ],
)
def test_what_cannot_be_explained_says_why(client: Client, fields: dict[str, Any], reason: str) -> None:
    for name, title in (("why", "Which words decided"), ("attention", "Attention")):
        html = part(client, name, **fields)
        assert reason in html
        assert f'id="missing-{name}">{title}</h2>' in html
    assert "Answer" in part(client, "answer", **fields)


def test_rows_of_64_tokens_are_explained(client: Client) -> None:
    assert "64 tokens." in part(client, "attention", model="multi-label", text="the cat " * 31)
    assert "the answer: a line below" in part(client, "why", model="multi-label", text="the cat " * 31)


def test_an_onnx_file_gives_answers_alone_and_the_page_says_so(folders: Path) -> None:
    (served,) = opened(folders, "multi-label")
    with serving([replace(served, has_weights=False)]) as client:
        document = client.get("/").body.decode()
        assert "This model is an ONNX file, which gives answers alone" in document
        assert not [each for each in Elements(document).named("input") if each.get("name") == "show"]
        assert "<nav" not in document  # there is one form alone
        reply = asked(client, text="a cat", part="why")
        assert (reply.status, "'why' is not shown here" in reply.json["error"]) == (422, True)


def test_what_is_not_read_is_said(client: Client) -> None:
    html = part(client, "answer", model="regression", text=["the cat " * 10, "a dog " * 10])
    assert "26 tokens were not read, because the model reads 17." in html


def test_a_browser_without_script_gets_a_full_page(client: Client) -> None:
    reply = asked(client, model="choices", show=["why", "attention"], **ROWS["choices"])
    document, elements = reply.body.decode(), Elements(reply.body.decode())
    assert document.startswith("<!doctype html>")
    assert [
        each for each in ("Answer", "Which words decided", "Attention, head by head") if each in document
    ] != []
    assert {"why", "heads", "answer"} <= {each.get("id") for _, each in elements.tags}
    assert [text.strip() for text in elements.texts["textarea"]] == ["It was", "dark\nhe\nthe night"]
    assert len([each for each in elements.named("input") if "checked" in each]) == 2
    reply = asked(client, model="choices", text="It was", lines="dark")
    assert reply.status == 422
    assert "this row: the model reads a text and at least two choices" in plain(reply.body.decode())
    invalid = [each for each in Elements(reply.body.decode()).named("textarea") if each.get("aria-invalid")]
    assert [each["aria-describedby"] for each in invalid] == ["problem", "problem"]
