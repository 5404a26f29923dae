"""The page at `/`: what is escaped, refused, or not said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bertcli.inference.serve import page
from tests.inference.serve.serving import Client, opened, serving
from tests.inference.serve.test_page import ROWS, SIMILAR, asked, part
from tests.reports.test_page import ATTACK, Elements


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
