"""The page in a browser: each model, hostile texts, links, the keyboard, a phone's width, dark, the key."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

webdriver = pytest.importorskip("selenium.webdriver")

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

from tests.inference.serve.serving import Client, opened, serving  # noqa: E402
from tests.inference.serve.test_page import ROWS, SIMILAR  # noqa: E402
from tests.inference.serve.test_page_refusals import hostile  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and chromedriver"),
]
FORMS: dict[str, dict[str, Any]] = {
    **{f"model={kind}": {**fields, "show": ["why", "attention"]} for kind, fields in ROWS.items()},
    "model=words": {"text": "The [MASK] sat.", "show": ["attention"]},
    "model=words&form=similarity": {**SIMILAR, "show": ["attention"]},
    "model=vectors": SIMILAR,
}
LONG = "the cat " * 31
"""A text whose row has 64 tokens."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@contextmanager
def opened_at(
    browser: Any, client: Client, address: str, width: int = 1100, scheme: str = "light"
) -> Iterator[Any]:
    """The page; afterward nothing was logged, and nothing but the server was asked."""
    resize(browser, width)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get("about:blank")  # else a link with the same path would load nothing
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(f"{client.url}{address}")
    yield browser
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert [url for url in asked if not url.startswith(f"{client.url}/")] == []


def text(page: Any, id_: str) -> str:
    return page.find_element("id", id_).get_property("textContent")


def all_of(page: Any, selector: str) -> list[Any]:
    return page.find_elements("css selector", selector)


def press(page: Any) -> None:
    page.find_element("css selector", "#ask button").click()


def resize(page: Any, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def wait(page: Any, script: str) -> None:
    WebDriverWait(page, 60, 0.02).until(lambda driver: driver.execute_script(f"return {script}"))


def answered(page: Any, start: str = "Answer: ") -> str:
    """What the page says after it has answered, with all parts."""
    idle = "document.getElementById('answers').ariaBusy === 'false' && !document.getElementById('pending')"
    said = f"document.getElementById('said').textContent.startsWith({json.dumps(start)})"
    wait(page, f"{idle} && {said}")
    return text(page, "said")


def link(query: str, fields: dict[str, Any]) -> str:
    return f"/?{query}#{urlencode(fields, doseq=True)}"


@pytest.mark.parametrize("query", FORMS)
def test_each_form_answers_with_its_parts_at_any_width(browser: Any, client: Client, query: str) -> None:
    shows = FORMS[query].get("show", [])
    with opened_at(browser, client, link(query, FORMS[query])) as page:
        answered(page)
        assert len(all_of(page, "#answers > section")) == 1 + len(shows)
        assert bool(all_of(page, ".scored")) == ("why" in shows)
        assert bool(all_of(page, "#lines path")) == ("attention" in shows)
        assert not all_of(page, '[aria-invalid="true"]')
        for width in (1100, 320):
            resize(page, width)
            assert page.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind", [*ROWS, "words", "vectors"])
def test_hostile_texts_are_shown_as_texts(browser: Any, client: Client, kind: str) -> None:
    fields = {**hostile(kind), "show": ["why", "attention"]}
    with opened_at(browser, client, link(f"model={kind}", fields), width=320) as page:
        answered(page)
        assert page.execute_script("return document.images.length") == 0
        assert page.execute_script("return document.documentElement.scrollWidth") <= 320
        assert page.find_element("css selector", "textarea").get_property("value") == hostile(kind)["text"][0]


def test_a_text_of_10_000_characters_is_answered_and_kept(browser: Any, client: Client) -> None:
    long = "wide🏴" * 2000
    with opened_at(
        browser, client, link("model=multi-label", {"text": long, "show": "why"}), width=320
    ) as page:
        answered(page)
        assert page.execute_script("return document.documentElement.scrollWidth") <= 320
        page.refresh()
        answered(page)
        assert page.find_element("css selector", "textarea").get_property("value") == long


def test_64_tokens_are_drawn_and_more_are_refused_with_the_reason(browser: Any, client: Client) -> None:
    shows = {"show": ["why", "attention"]}
    with opened_at(browser, client, link("model=multi-label", {"text": LONG, **shows})) as page:
        answered(page)
        assert len(all_of(page, "#queries button")) == 62
        assert len(all_of(page, "#grid canvas")) == 2 * 6
        assert len(all_of(page, ".scored")) == 62
    with opened_at(browser, client, link("model=multi-label", {"text": f"{LONG} the", **shows})) as page:
        answered(page)
        reasons = [
            text(page, "answers").count("up to 64 tokens, and here are 65"),
            len(page.find_elements("id", "grid")),
        ]
        assert reasons == [2, 0]


def test_the_keyboard_alone_asks_and_looks(browser: Any, client: Client) -> None:
    with opened_at(browser, client, "/?model=multi-label") as page:
        keys = ActionChains(page)
        reached = list[str]()
        for _ in range(13):
            keys.send_keys(Keys.TAB).perform()
            element = page.switch_to.active_element
            reached.append(element.get_attribute("id") or element.get_attribute("value") or element.tag_name)
            assert element.value_of_css_property("outline-style") == "solid"
        assert reached[9:13] == ["field-1", "button", "why", "attention"]
        keys.send_keys(Keys.SPACE).key_down(Keys.SHIFT).send_keys(Keys.TAB * 3).key_up(Keys.SHIFT)
        keys.send_keys("the cat").key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
        assert answered(page).startswith("Answer: ")
        assert page.switch_to.active_element.get_attribute("id") == "field-1"
        page.find_element("css selector", '#grid [aria-checked="true"]').send_keys(Keys.ARROW_RIGHT)
        assert page.switch_to.active_element.get_attribute("role") == "radio"


def test_what_a_screen_reader_needs_is_there(browser: Any, client: Client) -> None:
    with opened_at(browser, client, link("model=questions", FORMS["model=questions"])) as page:
        answered(page)
        for field in all_of(page, "textarea, #ask input[type=checkbox]"):
            assert field.accessible_name
        assert page.find_element("id", "said").get_attribute("role") == "status"
        assert page.find_element("id", "problem").get_attribute("role") == "alert"
        assert page.find_element("css selector", "nav").accessible_name == "Models"
        current = all_of(page, '[aria-current="page"]')
        assert [each.accessible_name for each in current] == ["questions question-answering"]
        sections = all_of(page, "#answers > section")
        assert [each.accessible_name for each in sections] == [
            "Answer",
            "Which words decided",
            "Attention, head by head",
        ]


def test_a_problem_is_shown_beside_the_fields_and_goes_again(browser: Any, client: Client) -> None:
    with opened_at(browser, client, "/?model=words") as page:
        field = page.find_element("css selector", "textarea")
        field.send_keys("the cat")
        press(page)
        wait(page, "document.getElementById('problem').textContent")
        assert "this text: no [MASK] in 'the cat'" in text(page, "problem")
        assert field.get_attribute("aria-invalid") == "true"
        assert page.switch_to.active_element == field
        (logged,) = page.get_log("browser")  # the browser's own line about the status
        assert "422" in logged["message"]
        field.send_keys(" [MASK]")
        press(page)
        answered(page)
        assert (text(page, "problem"), field.get_attribute("aria-invalid")) == ("", "false")


def test_a_link_holds_the_texts_and_the_server_does_not_see_them(browser: Any, client: Client) -> None:
    with opened_at(browser, client, "/?model=classification") as page:
        for field, value in zip(all_of(page, "textarea"), ("The cat.", "a+b & #c"), strict=True):
            field.send_keys(value)
        press(page)
        said = answered(page)
        link = page.find_element("id", "link").get_attribute("href")
        assert link == page.current_url
        assert link == f"{client.url}/?model=classification#text=The+cat.&text=a%2Bb+%26+%23c&show=why"
        other = page.find_element("link text", "regression regression").get_attribute("href")
    with opened_at(browser, client, link.removeprefix(client.url)) as page:
        assert answered(page) == said
        values = [field.get_property("value") for field in all_of(page, "textarea")]
        assert values == ["The cat.", "a+b & #c"]
        page.execute_script("location.hash = '#text=a&text=dog&show=attention'")
        wait(page, "document.getElementById('grid')")
        assert not all_of(page, ".scored")
    with opened_at(browser, client, other.removeprefix(client.url)) as page:
        assert answered(page)
        assert page.find_element("css selector", "textarea").get_property("value") == "The cat."


def test_an_answer_that_comes_late_does_not_replace_a_later_one(browser: Any, client: Client) -> None:
    with opened_at(browser, client, "/?model=multi-label") as page:
        field = page.find_element("css selector", "textarea")
        for _ in range(5):
            field.send_keys("the cat ")
            page.execute_script("document.getElementById('ask').requestSubmit()")
        answered(page)
        assert len(all_of(page, "#answer")) == 1
        assert len(all_of(page, ".scored")) == 10


def test_dark_and_light_differ_and_both_can_be_read(browser: Any, client: Client) -> None:
    contrasts = {}
    for scheme in ("light", "dark"):
        with opened_at(browser, client, "/", scheme=scheme) as page:
            (field,) = all_of(page, "textarea")
            colors = [field.value_of_css_property(name) for name in ("color", "background-color")]
            ink, paper = (sum(map(int, re.findall(r"\d+", each)[:3])) for each in colors)
            contrasts[scheme] = ink - paper
    assert contrasts["light"] < -400
    assert contrasts["dark"] > 400


def test_the_key_is_asked_for_and_kept_in_the_tab_alone(browser: Any, folders: Path) -> None:
    address = link("model=words", FORMS["model=words"])
    with (
        serving(opened(folders, "multi-label", "words"), "a key") as client,
        opened_at(browser, client, address) as page,
    ):
        field = page.find_element("id", "key")
        assert page.switch_to.active_element == field
        field.send_keys("wrong", Keys.ENTER)
        wait(page, "document.getElementById('key-problem').textContent")
        assert text(page, "key-problem") == "This is not the key."
        assert "401" in page.get_log("browser")[0]["message"]
        field.clear()
        field.send_keys("a key", Keys.ENTER)
        answered(page)
        assert not field.is_displayed()
        kept = "return [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]"
        assert page.execute_script(kept) == ['{"bertcli-key":"a key"}', "{}", ""]
        page.refresh()
        assert answered(page)


def test_without_a_server_the_page_says_so(browser: Any, folders: Path) -> None:
    with serving(opened(folders, "multi-label")) as client:
        browser.get(client.url)
    browser.find_element("css selector", "textarea").send_keys("the cat")
    press(browser)
    wait(browser, "document.getElementById('problem').textContent")
    assert text(browser, "problem") == "the server does not answer; is it still there?"
