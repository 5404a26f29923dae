"""HTML pages from templates."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bertcli.system.errors import UserError
from bertcli.system.terminal import duration, number, percent, visible

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
    document = ENVIRONMENT.get_template(template).render(
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


ENVIRONMENT = Environment(
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_shown,
)
ENVIRONMENT.filters.update(number=number, percent=percent, duration=duration)
