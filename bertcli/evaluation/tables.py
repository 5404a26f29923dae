"""Scores of a labeled task -> a readable table, or one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertcli.evaluation.evaluate import Scores

ROWS = 50
"""Maximum rows of a readable table."""


def scores_json(scores: Scores) -> dict[str, Any]:
    """`loss` and every metric by name, with tables."""
    return {"loss": scores.loss, **scores.metrics}


def scores_table(scores: Scores) -> str:
    """One number a line, then each table: per class, per type, the confusions. A long table is cut to `ROWS`
    rows: the most frequent classes."""
    lines = []
    for name, value in scores_json(scores).items():
        if name in scores.label_of_f1:
            continue
        if isinstance(value, Mapping):
            lines += ["", *_rows(name, value)]
        elif name == "confusions":
            lines += ["", *_confusions(value)]
        elif isinstance(value, list):
            lines += ["", f"{name} (a row for each right label, a column for each given one)"]
            lines += ["  " + "".join(f"{count:>8}" for count in row) for row in value]
        elif isinstance(value, float):
            lines.append(f"{scores.title(name):<21} {value:.4f}")
        else:
            lines.append(f"{name:<22}{value}")
    return "\n".join(lines)


def _rows(name: str, table: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Row name -> (column name -> value) as aligned columns."""
    columns = list(next(iter(table.values()), {}))
    width = max([len(name), *map(len, table)]) + 2
    lines = [f"{name:<{width}}" + "".join(f"{column:>11}" for column in columns)]
    shown = table.items()
    if len(table) > ROWS:
        shown = sorted(shown, key=lambda each: -each[1].get("count", 0))[:ROWS]
    for row, values in shown:
        cells = (f"{v:>11.4f}" if isinstance(v, float) else f"{v:>11}" for v in values.values())
        lines.append(f"{row:<{width}}" + "".join(cells))
    return lines + _more(len(table), "--json has them all")


def _confusions(confusions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The most frequent ones, if there are too many labels for a matrix."""
    head = "confusions, the most frequent (right -> given; there are too many labels for a matrix)"
    lines = [f"{each['count']:>8}  {each['right']} -> {each['given']}" for each in confusions[:ROWS]]
    return [head, *lines, *_more(len(confusions), f"--json has {len(confusions)}")]


def _more(count: int, where: str) -> list[str]:
    return [f"... and {count - ROWS:,} more ({where})"] if count > ROWS else []
