"""HTML pages from templates, and the numbers, shares, times and texts in them: rounded and shortened."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bertcli.system.errors import UserError
from bertcli.system.terminal import visible

NONE, ELLIPSIS = "–", "…"


def number(value: float | None) -> str:
    """The number as `1,234,567`, `3.50`, `0.0123` or `5.00e-5`; whole numbers keep all their digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if isinstance(value, int) or abs(value) >= 999.5:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    short = f"{value:#.3g}" if abs(value) >= 0.001 else f"{value:.2e}"
    return short.replace("e-0", "e-").removesuffix(".")


def percent(value: float | None) -> str:
    """A share of 1 as `34.1%`; shares that would be rounded to 0% or 100% are `<0.1%` or `>99.9%`."""
    if value is None or not math.isfinite(value):
        return NONE
    if 0 < value < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"


def duration(seconds: float | None) -> str:
    """The time as `42 s`, `6 min` or `3.2 h`."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def short(text: str, most: int) -> str:
    """The text, cut to `most` characters; an ellipsis shows that it was cut."""
    return text if len(text) <= most else text[: most - 1].rstrip() + ELLIPSIS


def around(text: str, start: int, end: int, most: int) -> tuple[int, int]:
    """Start and end of a piece of `text`: at most `most` characters, with `start` to `end` in its middle."""
    room = max(0, most - (end - start)) // 2
    first = max(0, min(start - room, len(text) - most))
    return first, min(len(text), first + most)


Made = TypeVar("Made")

SMALL = 10_000_000
"""Largest number of bytes of a corpus, or of labeled files, that is read again without being asked."""


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report.

    Attributes:
        device: the device that computes the answers of the model.
        check_data: read corpus or labeled files again, however large, for the findings of `check-data`.
        attributions: explain the first mistakes by the words of their texts.
    """

    device: str = "auto"
    check_data: bool = False
    attributions: bool = False


@dataclass
class Notes:
    """Notes for the reader. `lines`: what concerns the whole report, and why parts of it are left out."""

    lines: list[str] = field(default_factory=list)

    def unless_missing(self, what: str, make: Callable[[], Made]) -> Made | None:
        """The result of `make`; None if it raises a `UserError`, which is noted as the reason."""
        try:
            return make()
        except UserError as error:
            self.lines.append(f"Without {what}: {error}")
            return None


TEMPLATES = Path(__file__).parent / "templates"
DATA_ID = "data"
"""The id of the HTML element that holds the page's data as JSON for its script."""


def page(
    title: str, template: str, values: Mapping[str, Any], script: str | None = None, data: Any = None
) -> str:
    """The HTML document of a template that extends `base.html.j2`.

    Args:
        title: the title of the window.
        template: the name of the template in `templates/`.
        values: the values for the template; texts of users may hold anything.
        script: a file in `templates/` that runs after the page is loaded; None: the page has no script.
        data: JSON for the script, in the element `DATA_ID`.

    Raises `jinja2.UndefinedError` if the template names a value that is missing.
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
    return document.encode(errors="backslashreplace").decode()  # UTF-8 has no half of a surrogate pair


def _policy(code: str | None) -> str:
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "style-src 'unsafe-inline'"]
    if code is not None:
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join(rules)


def _shown(value: Any) -> Any:
    """The value for a template or a script, with its control characters made visible."""
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
