"""A template and its values -> a complete HTML document that loads nothing and sends nothing.

Every value is escaped, and its control characters are made visible. The Content Security Policy of the page
allows no request at all, and no script but the one that the page was made with.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bertcli.report.formatting import duration, number, percent
from bertcli.terminal import visible

TEMPLATES = Path(__file__).parent / "templates"
DATA_ID = "data"
"""Of the element that holds the page's data as JSON, for its script."""


def page(
    title: str, template: str, values: Mapping[str, Any], script: str | None = None, data: Any = None
) -> str:
    """The document of a template that extends `base.html.j2`.

    Args:
        title: of the window.
        template: its name in `templates/`.
        values: for the template; texts of users may hold anything.
        script: a file in `templates/` that runs after the page is read; None: the page has no script.
        data: JSON for the script, in the element `DATA_ID`.

    Raises `jinja2.UndefinedError` where the template names a value that is missing.
    """
    code = None if script is None else (TEMPLATES / script).read_text(encoding="utf-8")
    document = _ENVIRONMENT.get_template(template).render(
        **values,
        title=title,
        policy=_policy(code),
        script=None if code is None else Markup(code),
        data=_shown(data),
        data_id=DATA_ID,
    )
    return document.encode(errors="backslashreplace").decode()  # half a surrogate pair has no UTF-8


def _policy(code: str | None) -> str:
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "style-src 'unsafe-inline'"]
    if code is not None:
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join(rules)


def _shown(value: Any) -> Any:
    """A value for a template or a script, its control characters made visible."""
    if isinstance(value, Mapping):
        return {_shown(key): _shown(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters.update(number=number, percent=percent, duration=duration)
    return environment


_ENVIRONMENT = _environment()
