"""Labels -> likely mistakes: in how labels are written, and in rows whose label a model finds unlikely."""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.config.task import TaskSettings
from bertcli.system.errors import Finding, UserError
from bertcli.tasks.examples import Example, TextExample
from bertcli.tasks.facts import facts_of
from bertcli.tasks.label_cells import separator_of
from bertcli.tasks.registry import TASKS
from bertcli.tasks.table import number_in

_MISSING = frozenset(
    ["nan", "none", "null", "nil", "n/a", "na", "#n/a", "<na>", "nat", "missing", "undefined", "-", "?", "."]
)
"""How programs and people write a missing value, in lower case."""
_NAMED = 6
"""Number of labels that are named; the others are counted."""


def label_doubts(
    counts: Mapping[str, Mapping[str, int]], splits: Mapping[str, Sequence[Example]], settings: TaskSettings
) -> list[Finding]:
    """Likely mistakes in the labels of a classification, or in entity types. Other tasks have none.

    Their `share` is the share of the rows, of train or of dev, that have it.

    Args:
        counts: split -> label -> how often it occurs (`data_report.figures`).
        splits: the examples of train, and of dev if there is one.
    """
    taken = facts_of(settings.type).keys
    if "label_names" not in taken:
        return []
    total = sum(map(Counter, counts.values()), Counter[str]())
    doubts = _missing(total)
    if "multi_label" in taken:
        doubts += _several(total)
    doubts += [*_spellings(total), *_two_kinds(total), *_one_sided(counts)]
    if "multi_label" in taken and not settings.multi_label:
        doubts += _blanks(splits, settings)
    return doubts


def _doubt(found: Mapping[str, int], total: Counter[str], problem: str, mend: str) -> list[Finding]:
    """A doubt about these labels, if there are any."""
    return [Finding(f"{problem}: {_named(found)}", mend, share=_share(found, total))] if found else []


def _missing(total: Counter[str]) -> list[Finding]:
    found = {label: count for label, count in total.items() if _is_missing(label)}
    mend = f"if they do, leave such rows out: task.skip_labels: {json.dumps(list(found))}"
    return _doubt(found, total, "labels that usually stand for a missing one", mend=mend)


def _several(total: Counter[str]) -> list[Finding]:
    if (separator := separator_of(total.elements())) is None:
        return []
    found = {label: count for label, count in total.items() if separator in label}
    keys = "task.multi_label: true"
    if separator != ",":
        keys += f" and task.label_separator: {json.dumps(separator)}"
    problem = f"labels with {separator!r} between labels that also stand alone"
    mend = f"each is learned as a label of its own; if a text has several labels, set {keys}"
    return _doubt(found, total, problem, mend=mend)


def _is_missing(label: str) -> bool:
    return label.casefold() in _MISSING


def _spellings(total: Counter[str]) -> Iterator[Finding]:
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for label, count in total.items():
        groups[_bare(label)][label] = count
    same = [group for group in groups.values() if len(group) > 1]
    if same:
        shown = "; ".join(_named(group) for group in same[:_NAMED])
        more = f"; and {len(same) - _NAMED} more" if len(same) > _NAMED else ""
        yield Finding(
            f"labels that differ only in case, blanks or the spelling of a number: {shown}{more}",
            "the model learns each as a class of its own; if they are the same, write them the same way",
            share=sum(_share(group, total) for group in same),
        )


def _bare(label: str) -> str:
    """The normalized label: equal for two spellings of one label."""
    if (number := number_in(label)) is not None:
        return repr(number)
    plain = unicodedata.normalize("NFKC", label).casefold()
    return "".join(c for c in plain if not c.isspace() and unicodedata.category(c) != "Cf")


def _two_kinds(total: Counter[str]) -> Iterator[Finding]:
    numbers = {label: count for label, count in total.items() if number_in(label) is not None}
    others = {label: n for label, n in total.items() if label not in numbers and not _is_missing(label)}
    if numbers and others:
        fewer = min(numbers, others, key=lambda each: sum(each.values()))
        yield Finding(
            f"labels of two kinds, numbers ({_named(numbers)}) beside words ({_named(others)})",
            "if two ways of labeling are mixed, use one of them; if a column is shifted, mend those rows",
            share=_share(fewer, total),
        )


def _one_sided(counts: Mapping[str, Mapping[str, int]]) -> list[Finding]:
    """A doubt about labels only in train; labels only in dev are an error (`labels.check_labels`)."""
    if "dev" not in counts:
        return []
    alone = {label: count for label, count in counts["train"].items() if label not in counts["dev"]}
    mend = "the scores do not measure them; add such rows to dev, or raise task.dev_fraction"
    return _doubt(alone, Counter(counts["train"]), "labels of train that dev does not have", mend=mend)


def _blanks(splits: Mapping[str, Sequence[Example]], settings: TaskSettings) -> Iterator[Finding]:
    for split, examples in splits.items():
        texts = [example for example in examples if isinstance(example, TextExample)]
        (label,) = settings.label_columns or (None,)
        names = list(texts[0].columns) if texts else []  # a number is that of a column of the first row
        name = label if isinstance(label, str) else names[label or 0] if names else ""
        around = [each.where for each in texts if _has_blanks(each.columns.get(name))]
        if around:
            yield Finding(
                f"{len(around):,} labels of {split} have blanks around them, first in {around[0]}",
                "they are removed here; other programs will treat them as other labels",
                share=len(around) / len(examples),
            )


def _has_blanks(value: Any) -> bool:
    """True for text with blanks around it."""
    return isinstance(value, str) and value != value.strip()


def _named(labels: Mapping[str, int]) -> str:
    frequent = sorted(labels.items(), key=lambda each: (-each[1], each[0]))
    named = ", ".join(f"{label!r} ({count:,})" for label, count in frequent[:_NAMED])
    return named + (f" and {len(labels) - _NAMED:,} more" if len(labels) > _NAMED else "")


def _share(some: Mapping[str, int], total: Counter[str]) -> float:
    return sum(some.values()) / max(1, total.total())


def check_doubted(settings: TaskSettings) -> None:
    """Raise `UserError` if the answers of this task say nothing about labels."""
    able = [type for type in TASKS if "multi_label" in facts_of(type).keys]
    if settings.type not in able:
        raise UserError(
            f"--suspect-labels: is for type: {' or '.join(able)}, whose models give the probability of each "
            f"label of a text; this is one of type: {settings.type}"
        )


def suspect_labels(cases: Iterable[Mapping[str, Any]], settings: TaskSettings) -> list[dict[str, Any]]:
    """The rows of a classification whose label is most likely wrong, the worst first.

    A label is confident in a row if it is at least as likely there as in the mean of its own rows. A row is a
    suspect if the likeliest of its confident labels is not its own (the confident joint: Northcutt et al.
    2021, section 3.1). A label whose probabilities are low in its own rows is therefore confident at a lower
    probability. Suspects are ordered by the margin, the probability of the row's label less that of the other
    one. With `multi_label`, each label is there or not there, and the row has the place of its worst label.

    Args:
        cases: rows with the answers of a model that did not learn from them (`Evaluated.cases`).

    Returns:
        For each row `where`, `columns` and, if known, `fold`; `given`, the label of the file; `suggested`;
        the probabilities of both; `score`, the margin.

    Raises:
        UserError: the task gives no probabilities of labels.
    """
    check_doubted(settings)
    rows, names, found = list[dict[str, Any]](), list[str](), list[NDArray[np.float64]]()
    for case in cases:
        probabilities = case["prediction"]["probabilities"]
        names = names or list(probabilities)
        found.append(np.array([probabilities[name] for name in names]))
        rows.append({key: case[key] for key in ("where", "columns", "right", "fold") if key in case})
    table_NC, numbers = np.stack(found), {name: number for number, name in enumerate(names)}
    if not settings.multi_label:
        given_N = np.array([numbers[row["right"]] for row in rows])
        margins_N, others_N = _margins(table_NC, given_N)
        answers = ((names[other], float(table_NC[i, other])) for i, other in enumerate(others_N))
        own_N = table_NC[np.arange(len(rows)), given_N]
    else:
        has_NC = np.array([[name in row["right"] for name in names] for row in rows])
        both_NC2 = np.stack([1 - table_NC, table_NC], axis=2)
        margins_NC = np.stack([_margins(both_NC2[:, c], has_NC[:, c] * 1)[0] for c in range(len(names))], 1)
        worst_N, margins_N = margins_NC.argmin(1), margins_NC.min(1)
        own_N = np.where(has_NC, table_NC, 1 - table_NC)[np.arange(len(rows)), worst_N]
        toggled = (sorted({*row["right"]} ^ {names[c]}) for row, c in zip(rows, worst_N, strict=True))
        answers = ((labels, 1 - float(own)) for labels, own in zip(toggled, own_N, strict=True))
    suspects = [
        {
            **{key: value for key, value in row.items() if key != "right"},
            "given": row["right"],
            "suggested": suggested,
            "given_probability": float(own),
            "suggested_probability": probability,
            "score": float(margin),
        }
        for row, own, (suggested, probability), margin in zip(rows, own_N, answers, margins_N, strict=True)
        if np.isfinite(margin)
    ]
    return sorted(suspects, key=lambda each: each["score"])


def _margins(
    table_NC: NDArray[np.float64], given_N: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """float64 [N]: the margin of each suspect, else inf; int64 [N]: the likeliest confident label."""
    rows_N, confident_NC = np.arange(len(table_NC)), table_NC.copy()
    for label in range(table_NC.shape[1]):
        own = table_NC[given_N == label, label]
        least = own.mean() if len(own) else np.inf  # a label without rows is not suggested
        confident_NC[table_NC[:, label] < least, label] = -np.inf
    others_N = confident_NC.argmax(1)
    found_N = confident_NC[rows_N, others_N]
    is_suspect_N = (others_N != given_N) & np.isfinite(found_N)
    return np.where(is_suspect_N, table_NC[rows_N, given_N] - found_N, np.inf), others_N
