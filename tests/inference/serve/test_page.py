"""The page at `/`: the fields of each model, answers, what explains them; what is escaped or refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

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
from tests.reports.test_page import ATTACK, Elements

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


def hostile(kind: str) -> dict[str, list[str]]:
    """Fields with texts that would like to be elements, scripts, or written from right to left."""
    if kind == "words":
        return {"text": ["<img src=x> [MASK]"]}  # its rows are short
    attack = f"{ATTACK} \u202e 🏴‍☠️ مرحبا &amp;" + " the cat" * 3
    fields = ROWS.get(kind, SIMILAR).items()
    listed = {name: [value] if isinstance(value, str) else value for name, value in fields}
    return {name: [f"{attack}\n{value}" for value in values] for name, values in listed.items()}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in ROWS for name in ("answer", "why", "attention")),
        *((kind, name) for kind in ("words", "vectors") for name in ("answer", "attention")),
    ],
)
def test_a_hostile_text_stays_a_text(client: Client, kind: str, name: str) -> None:
    elements = Elements(part(client, name, model=kind, **hostile(kind)))
    assert not elements.named("img")
    assert [each for each in elements.named("script") if each.get("type") != "application/json"] == []
    assert [key for _, each in elements.tags for key in each if key.startswith("on")] == []


def test_a_hostile_text_in_the_form_stays_a_text(client: Client) -> None:
    document = asked(client, model="multi-label", text=f"</textarea>{ATTACK}" + "wide" * 3000).body.decode()
    elements = Elements(document)
    assert not elements.named("img")
    assert len(elements.named("script")) == 1
    assert "</textarea><img" not in document
    assert elements.texts["textarea"][0].startswith(f"\n</textarea>{ATTACK}")


@pytest.mark.parametrize("path", ["/", page.PATH])
def test_the_page_allows_its_own_server_and_script_alone(client: Client, path: str) -> None:
    reply = client.get(path)
    policy = reply.headers["content-security-policy"]
    assert re.fullmatch(
        "default-src 'none'; base-uri 'none'; style-src 'unsafe-inline'; form-action 'self'; "
        "connect-src 'self'; script-src 'sha256-[^']+'; frame-ancestors 'none'",
        policy,
    )
    assert (reply.headers["referrer-policy"], reply.headers["cache-control"]) == ("no-referrer", "no-store")
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|url\(|@import", reply.body.decode())


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"model": "red", "text": "a"}, 422, "model: 'red' is not served here; give one of multi-label"),
        (
            {"model": "classification", "text": "a"},
            422,
            "this row: the model reads a pair of texts, each choice",
        ),
        ({"model": "words", "text": "a cat"}, 422, "this text: no [MASK] in 'a cat'"),
        ({"model": "vectors", "text": "a cat"}, 422, "give a query, and texts to compare it with"),
        ({"model": "vectors", "text": "a", "lines": "a\n" * 1024}, 422, "1,025 texts in one request"),
        ({"model": "choices", "text": "a", "lines": "a\n" * 1025}, 422, "1,025 lines; give at most 1,024"),
        ({"text": ["a"] * 40}, 422, "the body is no form in UTF-8: Max number of fields exceeded"),
    ],
)
def test_a_wrong_form_has_the_message_of_the_command(
    client: Client, fields: dict[str, Any], status: int, message: str
) -> None:
    reply = asked(client, part="answer", **fields)
    assert (reply.status, message in reply.json["error"]) == (status, True), reply.body


def test_a_body_that_is_not_utf8_is_refused(client: Client) -> None:
    for body in (b"text=%ff", b"text=\xff"):
        reply = client.request("POST", page.PATH, body, Content_Type="application/x-www-form-urlencoded")
        assert (reply.status, "the body is no form in UTF-8" in reply.json["error"]) == (422, True)


def test_a_model_that_is_not_there_is_said_in_the_page(client: Client) -> None:
    reply = client.get(f"/?model={quote(ATTACK)}")
    assert (reply.status, "is not served here" in reply.body.decode()) == (404, True)
    assert not Elements(reply.body.decode()).named("img")


def test_the_form_is_refused_from_other_sites(client: Client) -> None:
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        reply = client.request("POST", page.PATH, b"text=a&part=answer", Sec_Fetch_Site=site)
        assert reply.status == status, site


def test_the_page_is_counted_and_the_docs_are_linked(client: Client) -> None:
    assert 'href="/docs"' in client.get("/").body.decode()
    assert (
        f'bertcli_requests_total{{path="{page.PATH}",status="200"}}' in client.get("/metrics").body.decode()
    )


@pytest.fixture(scope="module")
def locked(folders: Path) -> Iterator[Client]:
    """A server that needs a key."""
    with serving(opened(folders, "multi-label", "words"), "a key") as client:
        yield client


def test_nothing_of_a_model_is_shown_without_the_key(locked: Client) -> None:
    document = locked.get("/?model=multi-label").body.decode()
    assert "This server needs a key" in document
    assert not re.search("multi-label|words<|textarea id", document)
    assert locked.get(page.PATH).status == 401
    assert asked(locked, text="a", part="answer").status == 401
    form = locked.get(f"{page.PATH}?model=words&form=similarity", Authorization="Bearer a key").body.decode()
    assert form.lstrip().startswith("<nav")
    assert '<input type="hidden" name="form" value="similarity">' in form


def test_nothing_of_a_text_is_said_by_the_server(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert "red" in part(client, "answer", text="my secret cat")
    asked(client, model="words", text="my secret cat")
    said = capsys.readouterr()
    assert said.out + said.err == ""
