"""The pictures of the documents: the report of a pretraining run, and the attention of its model.

    scripts/quickstart.sh                       # a run to be shown
    python scripts/pictures.py runs/quickstart  # writes docs/report.png and docs/attention.png

Needs selenium (`pip install '.[test]'`), Chromium and chromedriver. Each page is made by its command, and
shown by Chromium without a window.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

DOCS = Path(__file__).parents[1] / "docs"
SENTENCE = "She looked at him, and he told her that the old garden was hers."
WIDTH = 1080
HEIGHTS = {"report": 1230, "attention": 1010}
"""Of the part of each page that is shown, from the top, in CSS pixels."""


def make_pages(run: Path, folder: Path) -> None:
    """Write `report.html` and `attention.html` into `folder`."""
    commands = {"report": ["report", run], "attention": ["attention", run, SENTENCE]}
    for name, arguments in commands.items():
        page = folder / f"{name}.html"
        subprocess.run(
            [sys.executable, "-m", "bertcli", *map(str, arguments), "--output", str(page)], check=True
        )


def take(browser: webdriver.Chrome, page: Path, height: int) -> bytes:
    """The upper part of a page as PNG, in its light colors."""
    size = {"width": WIDTH, "height": height}
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**size, "deviceScaleFactor": 1, "mobile": False}
    )
    light = {"name": "prefers-color-scheme", "value": "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [light]})
    browser.get(page.as_uri())
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])


def chromium() -> webdriver.Chrome:
    """Without a window."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a pretraining run")
    run = parser.parse_args().run
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        make_pages(run, Path(folder))
        for name, height in HEIGHTS.items():
            picture = DOCS / f"{name}.png"
            picture.write_bytes(take(browser, Path(folder) / f"{name}.html", height))
            print(f"{picture}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
