"""HTML pages from templates."""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
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
    title: str,
    template: str,
    values: Mapping[str, Any],
    scripts: Sequence[str] = (),
    data: Any = None,
    asks: bool = False,
) -> str:
    """The HTML document of a template that extends `base.html.j2`.

    Args:
        title: the title of the window.
        template: the name of the template in `templates/`.
        values: the values for the template; texts of users may hold anything.
        scripts: files in `templates/` that run in this order after the page is loaded.
        data: JSON for the scripts, in the element `DATA_ID`.
        asks: whether the page sends what its user writes to the server that it comes from.

    Raises `jinja2.UndefinedError` if the template names a value that is missing.
    """
    values = {
        **values,
        "title": title,
        "policy": content_policy(scripts, asks),
        "script": Markup(_code(scripts)) if scripts else None,
        "data": _shown(data),
        "data_id": DATA_ID,
    }
    return _written(ENVIRONMENT.get_template(template).render(values))


def fragment(template: str, values: Mapping[str, Any], *blocks: str, data: Any = None) -> str:
    """Blocks of a template, and the data, for a page that is open; the values are those of `page`."""
    context = {**values, "data": _shown(data), "data_id": DATA_ID}
    parts = list[str]()
    for name, chosen in ((template, blocks), ("base.html.j2", ["data"])):
        found = ENVIRONMENT.get_template(name)
        for block in chosen:
            parts += found.blocks[block](found.new_context(context))
    return _written("".join(parts))


def content_policy(scripts: Sequence[str] = (), asks: bool = False) -> str:
    """What the browser must refuse (Content-Security-Policy) in a page with these `scripts`, as in `page`."""
    rules = ["default-src 'none'", "base-uri 'none'", "style-src 'unsafe-inline'"]
    rules += ["form-action 'self'", "connect-src 'self'"] if asks else ["form-action 'none'"]
    if scripts:
        digest = base64.b64encode(hashlib.sha256(_code(scripts).encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join(rules)


def _code(scripts: Sequence[str]) -> str:
    return "".join((TEMPLATES / script).read_text(encoding="utf-8") for script in scripts)


def _written(document: str) -> str:
    """The document with halves of surrogate pairs spelled out, which UTF-8 does not have."""
    return document.encode(errors="backslashreplace").decode()


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
