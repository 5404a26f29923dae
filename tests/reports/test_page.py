"""The page kit: what it allows, what it escapes, how numbers are written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import FileSystemLoader, UndefinedError

from bertcli.reports import page as page_module
from bertcli.reports.page import page

TEMPLATE = (
    '{% extends "base.html.j2" %}{% block main %}<p id="t" dir="auto" title="{{ text }}">{{ text }}</p>'
    "{% endblock %}"
)
ATTACK = "<img src=x onerror=alert(1)>\"'</script><script>alert(1)</script>"


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text in each script."""

    def __init__(self, document: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._inside = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._inside, []).append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for each in page_module.TEMPLATES.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    (tmp_path / "t.html.j2").write_text(TEMPLATE, encoding="utf-8")
    (tmp_path / "t.js").write_text('"use strict";\nlet a = 1 < 2 && "é";\n', encoding="utf-8")
    monkeypatch.setattr(page_module, "TEMPLATES", tmp_path)
    environment = page_module.ENVIRONMENT.overlay(loader=FileSystemLoader(tmp_path))
    monkeypatch.setattr(page_module, "ENVIRONMENT", environment)
    return tmp_path


def test_a_page_is_a_complete_document_that_asks_for_nothing(templates: Path) -> None:
    document = page("A title", "t.html.j2", {"text": "hello"})
    elements = Elements(document)
    assert document.startswith("<!doctype html>")
    assert elements.named("html") == [{"lang": "en"}]
    assert elements.texts["title"][0] == "A title"
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in elements.named("meta")
    assert not elements.named("script")
    assert not elements.named("link")
    assert not re.search(r"https?:|url\(|@import", document)
    policies = [each["content"] for each in elements.named("meta") if each.get("http-equiv")]
    assert policies == ["default-src 'none'; base-uri 'none'; style-src 'unsafe-inline'; form-action 'none'"]


def test_texts_of_users_are_escaped_everywhere(templates: Path) -> None:
    elements = Elements(
        page(ATTACK, "t.html.j2", {"text": ATTACK}, scripts=["t.js"], data={ATTACK: [ATTACK]})
    )
    assert not elements.named("img")
    assert [each for _, each in elements.tags if any(key.startswith("on") for key in each)] == []
    assert len(elements.named("script")) == 2
    assert elements.named("p")[0]["title"] == ATTACK
    assert json.loads(elements.texts["script"][0]) == {ATTACK: [ATTACK]}


def test_the_one_script_is_allowed_by_its_hash(templates: Path) -> None:
    document = page("t", "t.html.j2", {"text": ""}, scripts=["t.js"])
    elements = Elements(document)
    code = (templates / "t.js").read_text(encoding="utf-8")
    assert elements.texts["script"] == [code]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = next(each["content"] for each in elements.named("meta") if each.get("http-equiv"))
    assert policy is not None
    assert policy.endswith(f"script-src 'sha256-{digest}'")


def test_control_characters_are_visible_in_the_page_and_in_its_data(templates: Path) -> None:
    document = page("t", "t.html.j2", {"text": "a\x1b\u202eb"}, data=["\u202ec"])
    elements = Elements(document)
    assert elements.texts["p"] == [r"a\x1b\u202eb"]
    assert json.loads(elements.texts["script"][0]) == [r"\u202ec"]


def test_half_a_surrogate_pair_can_be_written(templates: Path) -> None:
    assert r"x\ud800" in page("t", "t.html.j2", {"text": "x\ud800"}, data="\ud800")


def test_a_missing_value_is_an_error(templates: Path) -> None:
    with pytest.raises(UndefinedError):
        page("t", "t.html.j2", {})
