"""The pictures of the documents: reports of runs, of seeds and of two runs, attention, decisive words; the
page of the server.

    scripts/quickstart.sh                       # a run to be shown
    python scripts/pictures.py runs/quickstart  # writes docs/report.png and the others

Needs selenium (`pip install '.[test]'`), Chromium and chromedriver. A command makes each page, or the server
gives it; Chromium shows it without a window. For all but report and attention the model is fine-tuned on
the bundled messages.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

DOCS = Path(__file__).parents[1] / "docs"
MESSAGE = "You won! Call 0800 123456 now to claim your prize."
SENTENCE = "She looked at him, and he told her that the old garden was hers."
WIDTH = 1080
HEIGHTS = {
    "report": 1230,
    "seeds": 1130,
    "comparison": 1130,
    "attention": 1010,
    "spam": 1130,
    "words": 520,
    "serve": 1130,
}
"""Of the part of each page that is shown, from the top, in CSS pixels."""
FINETUNING = """
model: {run}
task:
  {{type: classification, train: sms-spam, dev_fraction: 0.2, text: message, label: label, max_length: 64}}
training: {{epochs: 2, learning_rate: 1.0e-4}}
evaluation: {{every_steps: 40}}
output_dir: {folder}
"""


def make_pages(run: Path, folder: Path, names: list[str]) -> None:
    """Write the pages of these names into `folder`."""
    spam, slower, bundled = folder / "three-seeds", folder / "slower", folder / "spam"
    if "seeds" in names or "comparison" in names:
        finetune(run, spam, "seeds=[1,2,3]")
    if {"spam", "words", "serve"} & {*names}:
        settings = ("--set", f"model={run.resolve()}", "--set", f"output_dir={bundled}")
        bertcli("finetune", "spam", *settings)
    if "comparison" in names:
        finetune(run, slower, "training.learning_rate=2.0e-5")
    commands = {
        "report": ["report", run],
        "seeds": ["report", spam],
        "comparison": ["report", spam / "seed-1", slower],
        "attention": ["attention", run, SENTENCE],
        "spam": ["report", bundled, "--attributions"],
        "words": ["attention", bundled, MESSAGE, "--attributions"],
    }
    for name in commands.keys() & {*names}:
        bertcli(*commands[name], "--output", folder / f"{name}.html")


def finetune(run: Path, folder: Path, setting: str) -> None:
    """Write a run into `folder`."""
    config = folder.with_suffix(".yaml")
    config.write_text(FINETUNING.format(run=run.resolve(), folder=folder))
    bertcli("finetune", config, "--set", setting)


def bertcli(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "bertcli", *map(str, arguments)], check=True)


@contextlib.contextmanager
def serving(*models: object) -> Iterator[str]:
    """The address of a server of these models."""
    options = ["--port", "0", "--engine", "bertcli"]
    command = [sys.executable, "-m", "bertcli", "serve", *map(str, models), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line)))
        finally:
            server.terminate()


def take(browser: webdriver.Chrome, address: str, height: int) -> bytes:
    """The upper part of a page as PNG, in its light colors; a page that asks is waited for."""
    size = {"width": WIDTH, "height": height}
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**size, "deviceScaleFactor": 1, "mobile": False}
    )
    light = {"name": "prefers-color-scheme", "value": "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [light]})
    browser.get(address)
    idle = "return !document.getElementById('ask') || document.querySelector('#answers .why')"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(idle))
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
    parser.add_argument("--only", nargs="+", choices=HEIGHTS, default=list(HEIGHTS), help="these pictures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        make_pages(given.run, Path(folder), given.only)
        for name in given.only:
            picture = DOCS / f"{name}.png"
            if name == "serve":
                with serving(Path(folder) / "spam", f"words={given.run}") as server:
                    asked = urlencode({"text": MESSAGE, "show": "why"})
                    picture.write_bytes(take(browser, f"{server}/#{asked}", HEIGHTS[name]))
            else:
                picture.write_bytes(take(browser, (Path(folder) / f"{name}.html").as_uri(), HEIGHTS[name]))
            print(f"{picture}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
