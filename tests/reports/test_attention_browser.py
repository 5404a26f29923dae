"""The page of attention in a browser: what its controls do, by mouse and keyboard, and what it asks for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

selenium = pytest.importorskip("selenium")

from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

from bertcli.inference.attention import Attention  # noqa: E402
from bertcli.reports.attention import attention_page  # noqa: E402
from bertcli.tasks.row_words import ReadRow, Word  # noqa: E402
from bertcli.tokenizer.frame import Row  # noqa: E402
from tests.reports.test_attention import random_attention  # noqa: E402
from tests.reports.test_page import ATTACK  # noqa: E402

DRIVER = shutil.which("chromedriver")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(DRIVER is None or BROWSER is None, reason="no Chromium with its driver"),
]
WORDS = ("cats", "sat", ATTACK, "مرحبا", "日")
LAYERS, HEADS, TOKENS = 3, 4, 9


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def attention() -> Attention:
    """[CLS] cat ##s sat ATTACK [SEP] مرحبا 日 [SEP]; in layer 1, head 2 each attends to the next one."""
    torch.manual_seed(1)
    places = (range(1, 3), range(3, 4), range(4, 5), range(6, 7), range(7, 8))
    words = tuple(
        Word(text, tokens, int(tokens.start > 5)) for text, tokens in zip(WORDS, places, strict=True)
    )
    tokens = ("[CLS]", "cat", "##s", "sat", ATTACK, "[SEP]", "مرحبا", "日", "[SEP]")
    probabilities_LNTT = torch.randn(LAYERS, HEADS, TOKENS, TOKENS).softmax(dim=-1)
    probabilities_LNTT[1, 2] = torch.eye(TOKENS).roll(1, dims=1)
    return Attention(
        ReadRow(Row(list(range(TOKENS)), 6), words, 0), tokens, tuple(range(LAYERS)), probabilities_LNTT
    )


@pytest.fixture
def page(browser: Any, attention: Attention, tmp_path: Path) -> Any:
    with opened(browser, tmp_path / "a.html", attention, head=(1, 2)) as shown:
        yield shown


@contextmanager
def opened(browser: Any, path: Path, attention: Attention, head: tuple[int, int]) -> Iterator[Any]:
    """The browser, with the page open; afterward nothing was logged, and nothing but the page was loaded."""
    document = attention_page("m", (ATTACK, "b"), attention, head=head, reason="why")
    path.write_text(document, encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    browser.get_log("performance")
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked == [path.as_uri()]


def words(page: Any, side: str) -> list[Any]:
    return page.find_elements("css selector", f"#{side} button")


def lines(page: Any) -> int:
    return len(page.find_elements("css selector", "#lines path"))


def status(page: Any) -> str:
    return page.find_element("id", "status").text


def checked(page: Any) -> str:
    (button,) = page.find_elements("css selector", '#grid [aria-checked="true"]')
    return button.get_attribute("aria-label")


def table(page: Any) -> list[list[str]]:
    rows = page.find_elements("css selector", "#links tbody tr")
    return [[cell.text for cell in row.find_elements("css selector", "td")] for row in rows]


def test_the_chosen_head_is_shown_in_lines_in_words_and_in_a_table(page: Any) -> None:
    assert [word.text for word in words(page, "queries")] == list(WORDS)
    assert checked(page) == "layer 1, head 2"
    assert table(page)[:3] == [["sat", ATTACK, "100%"], ["مرحبا", "日", "100%"], ["cats", "cats", "50%"]]
    assert lines(page) == 4
    assert status(page).startswith(f"Layer 1, head 2. Strongest line: “sat” attends to “{ATTACK}”, 100%.")
    assert "Special tokens, which are hidden, get 40% of the attention of the words." in status(page)
    assert page.find_element("id", "status").get_attribute("aria-live") == "polite"
    assert len(page.find_elements("css selector", "#grid canvas")) == LAYERS * (HEADS + 1)


def test_lists_and_arrow_keys_choose_layer_and_head(page: Any) -> None:
    Select(page.find_element("id", "layer")).select_by_visible_text("2")
    Select(page.find_element("id", "head")).select_by_visible_text("mean of all")
    assert checked(page) == "layer 2, mean of all heads"
    assert status(page).startswith("Layer 2, mean of all heads. ")
    page.find_element("css selector", '#grid [aria-checked="true"]').send_keys(Keys.ARROW_UP)
    page.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    page.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    assert checked(page) == "layer 1, head 2"
    assert page.switch_to.active_element.get_attribute("aria-label") == "layer 1, head 2"
    page.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert checked(page) == "layer 2, head 2"
    assert Select(page.find_element("id", "layer")).first_selected_option.text == "2"
    page.find_element("css selector", '[aria-label="layer 0, head 3"]').click()
    assert Select(page.find_element("id", "head")).first_selected_option.text == "3"


def test_every_control_is_reached_by_the_tab_key(page: Any) -> None:
    reached = []
    for _ in range(7):
        ActionChains(page).send_keys(Keys.TAB).perform()
        element = page.switch_to.active_element
        reached.append(element.get_attribute("id") or element.get_attribute("title"))
    assert reached == ["layer", "head", "special", "pieces", "cats", "cats", "layer 1, head 2"]


def test_a_word_that_is_pointed_at_is_shown_alone(page: Any) -> None:
    ActionChains(page).move_to_element(words(page, "queries")[1]).perform()
    assert lines(page) == 1
    assert status(page).startswith(f"“sat” attends to “{ATTACK}” 100%")
    assert words(page, "keys")[2].get_attribute("data-weight") == "100%"
    ActionChains(page).move_to_element(page.find_element("tag name", "h1")).perform()
    assert lines(page) == 4


def test_a_word_that_has_the_focus_is_shown_alone(page: Any) -> None:
    first = words(page, "queries")[0]
    page.execute_script("arguments[0].focus()", first)
    assert status(page).startswith("“cats” attends to “cats” 50%, “sat” 50%")
    page.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert status(page).startswith("“sat” gets attention from “cats” 50%")
    assert lines(page) == 1
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert lines(page) == 4


def test_special_tokens_and_pieces_are_shown_on_demand(page: Any) -> None:
    page.find_element("id", "special").click()
    assert [word.text for word in words(page, "keys")] == ["[CLS]", *WORDS[:3], "[SEP]", *WORDS[3:], "[SEP]"]
    assert "hidden" not in status(page)
    page.find_element("id", "pieces").click()
    assert [word.text for word in words(page, "keys")][:3] == ["[CLS]", "cat", "##s"]
    assert lines(page) == TOKENS
    page.find_element("id", "special").click()
    assert len(words(page, "keys")) == 6


@pytest.mark.parametrize(("tokens", "layers", "heads"), [(64, 12, 12), (402, 1, 1)])
def test_a_row_of_a_base_model_and_a_long_one_are_drawn_with_all_heads(
    browser: Any, tmp_path: Path, tokens: int, layers: int, heads: int
) -> None:
    attention = random_attention(tokens, layers, heads)
    with opened(browser, tmp_path / "a.html", attention, head=(0, 0)) as page:
        assert len(words(page, "queries")) == tokens - 2
        assert lines(page) > 500
        assert len(page.find_elements("css selector", "#grid canvas")) == layers * (heads + 1)
        assert status(page).startswith("Layer 0, head 0. Strongest line: “word")


def test_the_chosen_head_has_an_outline_where_the_system_takes_the_colors(page: Any) -> None:
    outlines = {}
    for colors in ("none", "active"):
        features = [{"name": "forced-colors", "value": colors}]
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        button = page.find_element("css selector", '#grid [aria-checked="true"]')
        outlines[colors] = button.value_of_css_property("outline-style")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert outlines == {"none": "none", "active": "solid"}


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_no_page_is_wider_than_its_window(page: Any, width: int) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    root = page.find_element("tag name", "html")
    assert root.get_property("scrollWidth") == root.get_property("clientWidth")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_on_paper_the_chosen_head_is_alone(page: Any) -> None:
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    is_shown = {
        selector: page.find_element("css selector", selector).is_displayed()
        for selector in (".controls", ".overview", "#view", "#links", "#lines path")
    }
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert [selector for selector, shown in is_shown.items() if not shown] == [".controls", ".overview"]
