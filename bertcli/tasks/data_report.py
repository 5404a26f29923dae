"""Labeled examples -> their sizes, labels and lengths, and warnings, before training begins."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.config.task import TaskSettings
from bertcli.system.errors import Finding
from bertcli.tasks.examples import Example
from bertcli.tasks.facts import facts_of
from bertcli.tasks.label_cells import shortened
from bertcli.tasks.label_doubts import label_doubts
from bertcli.tasks.supervised import Items, full_lengths

_LISTED = 12
"""Number of labels that are named; the others are counted."""
CUT = 0.1
"""Share of the rows that are cut at `max_length`; below it there is no finding."""
_SHOWN = 3
"""Number of contradictions that are shown."""
Splits = Mapping[str, Sequence[Example]]
"""Examples by split: "train", "dev"."""


def describe(splits: Splits, items: Mapping[str, Items], settings: TaskSettings) -> list[str]:
    """Lines to print. The arguments are those of `figures`."""
    found = figures(splits, items, settings)
    doubts = label_doubts(found.get("counts", {}), splits, settings)
    doubts = [*cut_rows(found, settings), *doubts]
    return overview(found) + _warnings(found) + [f"warning: {each.problem}; {each.mend}" for each in doubts]


def overview(found: dict[str, Any]) -> list[str]:
    """Lines with the rows, labels and lengths of `figures`."""
    windows = found.get("windows", {})
    lines = []
    for split, rows in found["rows"].items():
        read = f" in {windows[split]:,} windows" if windows.get(split, rows) != rows else ""
        lines.append(f"{split}: {rows:,} rows{read}{_listed(found, split)}")
    for split, sizes in found["lengths"].items():
        of = "" if split == "train" else f" of {split}"
        longer = f"; {sizes['longer']:.1%} are {'read in several windows of' if windows else 'cut at'} "
        longer += f"{sizes['max_length']} (task.max_length)"
        if sizes.get("cut"):
            longer += f", and {sizes['cut']:.1%} are cut after the last one (task.max_windows)"
        lines.append(
            f"lengths{of}: median {sizes['median']:,} tokens, 95 % up to {sizes['p95']:,}, longest "
            f"{sizes['max']:,}{longer if sizes['longer'] else ''}"
        )
    return lines


def figures(splits: Splits, items: Mapping[str, Items], settings: TaskSettings) -> dict[str, Any]:
    """The figures behind `describe`, by name.

    Args:
        splits: the examples of "train", and of "dev" if there is one.
        items: the items of each split, of the examples that could be encoded, in their order.

    Returns:
        `rows`, `counts` and `duplicates`, each {train, dev}, or {train} without dev. `counts` are the rows of
        each label, or for token-classification the entities of each type; regression has `values` {min, mean,
        max} instead. `duplicates` are rows that repeat an earlier one, with {across}: rows of dev whose text
        is in train. `lengths` has {median, p95, max, max_length, longer: share of the rows longer than
        max_length} for each split, and with `task.windows` {cut: share of the rows that have more windows
        than max_windows}. `windows` has their number in each split, where long texts are divided.
        `contradictions`: texts of train with several labels, {text, where, labels} each.
    """
    train, dev = splits["train"], splits.get("dev")
    hashes = {split: _hashes(each) for split, each in splits.items()}
    repeated = {split: _repeated(each, hashes[split]) for split, each in splits.items()}
    windows = {split: sum(item.windows for item in each) for split, each in items.items()}
    what, count = ("counts", _counts) if train[0].number is None else ("values", _values)
    return {
        "rows": {split: len(each) for split, each in splits.items()},
        what: {split: count(each) for split, each in splits.items()},
        "lengths": {split: _lengths(each, settings) for split, each in items.items()},
        **({"windows": windows} if settings.in_windows else {}),
        "duplicates": {
            **{split: len(each) - len({e.texts for e in each}) for split, each in repeated.items()},
            **({} if dev is None else {"across": _across(train, dev, hashes)}),
        },
        "contradictions": _contradictions(repeated["train"]),
    }


def cut_rows(found: dict[str, Any], settings: TaskSettings) -> Iterator[Finding]:
    """A finding for each split of `figures` of whose rows many are cut at `max_length`."""
    takes_windows = "windows" in facts_of(settings.type).keys
    windows = "set task.windows: mean, which reads all of them in windows, or " if takes_windows else ""
    for split, lengths in found["lengths"].items():
        if not settings.in_windows and lengths["longer"] > CUT:
            problem = (
                f"{lengths['longer']:.1%} of the rows of {split} are cut at {settings.max_length} tokens"
            )
            yield Finding(problem, f"{windows}{longer_rows(lengths)}", share=lengths["longer"])


def longer_rows(lengths: dict[str, Any]) -> str:
    """How to give rows of these `lengths` of `figures` more room."""
    return f"raise task.max_length, as far as the model reads ({lengths['p95']} holds 95 % of the rows)"


def _hashes(examples: Sequence[Example]) -> NDArray[np.int64]:
    """A number for each example, equal for equal texts: a set of all texts would take far more memory."""
    return np.fromiter((hash(example.texts) for example in examples), np.int64, len(examples))


def _repeated(examples: Sequence[Example], hashes: NDArray[np.int64]) -> list[Example]:
    """The examples whose hash occurs more than once."""
    _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return _among(examples, counts[places] > 1)


def _among(examples: Sequence[Example], are: NDArray[np.bool_]) -> list[Example]:
    return [examples[number] for number in np.flatnonzero(are).tolist()]


def _across(train: Sequence[Example], dev: Sequence[Example], hashes: Mapping[str, NDArray[np.int64]]) -> int:
    """The examples of dev whose texts are in train."""
    texts = {each.texts for each in _among(train, np.isin(hashes["train"], hashes["dev"]))}
    return sum(each.texts in texts for each in _among(dev, np.isin(hashes["dev"], hashes["train"])))


def _lengths(items: Items, settings: TaskSettings) -> dict[str, Any]:
    """Figures on the tokens of each row, special ones included, before it was cut or divided into windows."""
    lengths = full_lengths(items)
    return {
        "median": int(np.median(lengths)),
        "p95": int(np.percentile(lengths, 95)),
        "max": int(max(lengths)),
        "max_length": settings.max_length,
        "longer": float(np.mean(np.array(lengths) > settings.max_length)),
        **({} if settings.windows == "first" else {"cut": _share_cut(items)}),
    }


def _share_cut(items: Items) -> float:
    return sum(item.dropped > 0 for item in items) / len(items)


def _values(examples: Sequence[Example]) -> dict[str, float]:
    values = np.array([each.number for each in examples], dtype=np.float64)
    return {"min": float(values.min()), "mean": float(values.mean()), "max": float(values.max())}


def _counts(examples: Sequence[Example]) -> dict[str, int]:
    """How often each label occurs, the most frequent first."""
    counts = Counter(name for example in examples for name in example.counted)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _contradictions(examples: Sequence[Example]) -> list[dict[str, Any]]:
    labels: dict[tuple[str, ...], dict[Any, str]] = {}
    for example in examples:
        if (label := example.answer) is not None:
            labels.setdefault(example.texts, {}).setdefault(label, example.where)
    return [
        {"text": " | ".join(texts), "where": list(each.values()), "labels": list(each)}
        for texts, each in labels.items()
        if len(each) > 1
    ]


def _listed(found: dict[str, Any], split: str) -> str:
    if "values" in found:
        values = found["values"][split]
        return f"; values from {values['min']:g} to {values['max']:g}, mean {values['mean']:.3g}"
    counts = found["counts"][split]
    total = sum(counts.values())
    named = [f"{name} {count:,} ({count / total:.1%})" for name, count in list(counts.items())[:_LISTED]]
    more = [f"{len(counts) - _LISTED} more"] if len(counts) > _LISTED else []
    return f"; {', '.join(named + more)}" if named else ""


def repeated_rows(found: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """The key, the number and the problem of each of the `duplicates` of `figures` that is not 0."""
    for where, count in found["duplicates"].items():
        if where == "across":
            words = "rows of dev are in train as well: scores will be too good"
        else:
            words = f"rows of {where} repeat the text of another one"
        if count:
            yield where, count, f"{count:,} {words}"


def _warnings(found: dict[str, Any]) -> list[str]:
    lines = [f"warning: {problem}" for _, _, problem in repeated_rows(found)]
    contradictions = found["contradictions"]
    if contradictions:
        lines.append(f"warning: one text, several labels: {len(contradictions):,} texts of train")
        for each in contradictions[:_SHOWN]:
            lines.append(f"  {shortened(each['text'])!r}: {'; '.join(each['where'])}")
    return lines
