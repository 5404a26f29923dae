"""Settings of the site: `sphinx-build -W --keep-going docs OUT`, with the extra `docs`."""

import re
from typing import Any

project = "bertcli"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "bertcli"
html_show_copyright = False
myst_heading_anchors = 3


def _unlink(app: Any, page: str, source: list[str]) -> None:
    """Links to files outside of docs/, which the site does not have, become their texts."""
    source[0] = re.sub(r"\[([^]]+)\]\(\.\./[^)]*\)", r"\1", source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _unlink)
