"""The pictures of the documents: their size, and how a page becomes one."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

pytest.importorskip("selenium")

from scripts.pictures import DOCS, HEIGHTS, WIDTH, chromium, take


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


@pytest.mark.parametrize("name", HEIGHTS)
def test_a_picture_is_as_the_script_takes_it_and_small(name: str) -> None:
    picture = (DOCS / f"{name}.png").read_bytes()
    assert size_of(picture) == (WIDTH, HEIGHTS[name])
    assert len(picture) < 300_000


@pytest.mark.browser
@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")), reason="needs Chromium and chromedriver"
)
def test_a_page_becomes_a_picture_of_its_upper_part(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p style='height: 5000px'>a page</p>")
    with chromium() as browser:
        assert size_of(take(browser, page.as_uri(), 200)) == (WIDTH, 200)
