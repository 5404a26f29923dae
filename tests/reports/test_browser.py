"""Reports in a real browser: no error, no request, dark and light, a phone's width, the keyboard."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertcli.reports.build import write_report
from bertcli.reports.page import ReportOptions
from tests.reports.runs import ATTACKS, labeled, pretraining, spam, table

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and chromedriver"),
]
KINDS = ("pretraining", "finetuning", "seeds", "comparison")


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


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of each kind; the texts and labels of one would like to be scripts."""
    folder = tmp_path_factory.mktemp("pages")
    labels = [f"{ATTACKS} {number}" for number in range(20)]
    rows = [["text", "label"], *([f"{ATTACKS} {n} {'wide' * 60}", labels[n % 20]] for n in range(80))]
    task = {"type": "classification", "text": "text", "label": "label"}
    (folder / "spam").mkdir()
    seeds = spam(folder / "spam", seeds=[1, 2])
    runs = {
        "pretraining": [pretraining(folder)],
        "finetuning": [labeled(folder / "labeled", task, "wild.csv", table(rows))],
        "seeds": [seeds],
        "comparison": [seeds / "seed-1", seeds / "seed-2"],
    }
    return {
        name: write_report(
            roots, ReportOptions(attributions=name == "finetuning"), output=folder / f"{name}.html"
        )
        for name, roots in runs.items()
    }


def opened(browser: Any, page: Path, width: int = 1100, scheme: str = "light") -> Any:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})
    browser.get(page.as_uri())
    return browser


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_no_error_and_asks_for_nothing(browser: Any, pages: dict[str, Path], kind: str) -> None:
    browser.get_log("performance")
    opened(browser, pages[kind])
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if url not in (pages[kind].as_uri(), "about:blank")] == []
    assert browser.execute_script("return document.images.length + document.scripts.length") == 0
    assert browser.execute_script("return document.querySelectorAll('.curve').length") > 0
    assert pages[kind].stat().st_size < 1_000_000


def test_a_request_that_was_written_into_a_page_is_refused(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    """The test above must be able to fail, and the page's policy must hold where escaping would not."""
    text = pages["pretraining"].read_text().replace("</main>", "<img src='x.png'><script>a()</script></main>")
    (tmp_path / "bad.html").write_text(text)
    opened(browser, tmp_path / "bad.html")
    said = " ".join(entry["message"] for entry in browser.get_log("browser"))
    assert said.count("Content Security Policy") >= 2


def test_the_axis_changes_by_the_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["pretraining"])

    def visible() -> set[str]:
        script = (
            "return [...document.querySelectorAll('.by')].filter(e => e.offsetHeight).map(e => e.className)"
        )
        return set(browser.execute_script(script))

    assert visible() == {"by by-step"}
    browser.find_element("id", "axis-step").send_keys(Keys.ARROW_RIGHT)
    assert visible() == {"by by-tokens"}
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert visible() == {"by by-seconds"}
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.execute_script(outline) == "solid"


def test_dark_and_light_differ_and_both_can_be_read(browser: Any, pages: dict[str, Path]) -> None:
    contrasts = {}
    for scheme in ("light", "dark"):
        opened(browser, pages["pretraining"], scheme=scheme)
        style = browser.execute_script(
            "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        )
        ink, paper = ([int(part) for part in each[4:-1].split(",")] for each in style)
        contrasts[scheme] = sum(ink) - sum(paper)
    assert contrasts["light"] < -400
    assert contrasts["dark"] > 400


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("kind", KINDS)
def test_no_page_scrolls_sideways(browser: Any, pages: dict[str, Path], kind: str, width: int) -> None:
    opened(browser, pages[kind], width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_print_opens_what_is_closed(browser: Any, pages: dict[str, Path]) -> None:
    opened(browser, pages["pretraining"])
    shown = "return document.querySelector('.settings').checkVisibility()"
    assert not browser.execute_script(shown)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.execute_script(shown)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
