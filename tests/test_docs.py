"""Files that the documents name are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
DOCUMENTS = [*(ROOT / page for page in PAGES), *sorted((ROOT / "docs").glob("*.md"))]
NAMED = re.compile(r"\b(?:tests|docs|configs|bertcli|scripts)/[\w/.-]*\w")


def test_each_named_file_is_there() -> None:
    named = {
        (path.name, name)
        for path in DOCUMENTS
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if "NAME" not in name  # what a reader is to write
    }
    assert len(named) > 20
    assert [(document, name) for document, name in sorted(named) if not (ROOT / name).exists()] == []
