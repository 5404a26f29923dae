"""CoNLL files, and columns that hold or make lists -> the task that they show: tags of words, or choices."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bertcli.tasks.columns import Column, Recognized, Sample, names_of, numbered_groups, text_column
from bertcli.tasks.conll import DOCUMENT, conll_fields, is_conllu, tag_columns
from bertcli.tasks.tags import is_tag

_MOST_TAGS = 100
"""Largest number of different tags, if the tags are plain names."""
_ORDER = ("bio", "numbers", "plain")
"""Kinds of tags: those of a scheme, numbers without names, and names such as parts of speech."""


def recognize_tags(sample: Sample) -> Recognized | None:
    """The keys of `task` for a CoNLL file, or a table with a column that has a tag for each word of another:
    lists, or texts with blanks; None for other files.

    If several fit, columns named as entity tags come first, then tags of a scheme. Raises `UserError` if the
    tags are numbers.
    """
    if sample.format == "conll":
        return _conll(sample.lines)
    found = [
        (kind, words, tags)
        for tags in sample.columns
        if (kind := _kind_of_tags(tags)) is not None
        for words in sample.columns
        if words is not tags and _are_words_of(words, tags, kind)
    ]
    if not found:
        return None
    found.sort(key=lambda each: ("ner" not in each[2].name.lower(), _ORDER.index(each[0])))
    kind, words, tags = found[0]
    if kind == "numbers":
        raise sample.refusal(_numbers(words, tags))
    task = Recognized({"text": words.name, "label": tags.name})
    task.add("type", "token-classification", "words and a tag for each of them in each row")
    if kind == "plain":
        task.add("tag_scheme", "plain", "the tags are names, each of one word")
    if others := [other for _, words_of_other, other in found[1:] if words_of_other is words]:
        task.comments["label"] = f"or {names_of(others)}"
    return task


def _items(column: Column) -> list[list[Any]]:
    """The lists of a column, or the words of its texts; empty: it has neither."""
    if column.lists is not None:
        return column.lists
    return [value.split() for value in column.values] if column.is_string else []


def _kind_of_tags(column: Column) -> str | None:
    rows = _items(column)
    if max(map(len, rows), default=0) < 2 and column.lists is None:
        return None
    items = {item if isinstance(item, str | int) else None for each in rows for item in each}
    if all(isinstance(item, str) and is_tag(item) for item in items):
        return "bio" if column.lists is not None or any("-" in str(item) for item in items) else None
    if column.lists is None or (len({len(each) for each in rows}) < 2 and not column.is_named_label):
        return None
    if all(isinstance(item, int) for item in items):
        return "numbers"
    is_plain = all(isinstance(item, str) for item in items) and len(items) <= _MOST_TAGS
    return "plain" if is_plain else None


def _are_words_of(words: Column, tags: Column, kind: str) -> bool:
    """True if there is a tag for each word."""
    items, marks = _items(words), _items(tags)
    if len(items) != len(marks) or not all(len(a) == len(b) for a, b in zip(items, marks, strict=True)):
        return False
    if not all(isinstance(item, str) for each in items for item in each):
        return False
    if kind == "bio":
        return True
    is_list = words.lists is not None or len({len(each) for each in items}) > 1
    return is_list and (kind == "numbers" or _distinct(items) > _distinct(marks) or words.name < tags.name)


def _distinct(rows: Sequence[Sequence[Any]]) -> int:
    return len({item for each in rows for item in each})


def _numbers(words: Column, tags: Column) -> str:
    most = max(item for each in tags.lists or () for item in each)
    return (
        f"{tags.name!r} holds a number for each word of {words.name!r}, and the file does not say what they "
        "mean. Write a config by hand (bertcli config finetune > mine.yaml) with task.type: "
        f"token-classification, task.text: {words.name}, task.label: {tags.name} and task.label_names: "
        f"[O, B-PER, ...], the name of each number from 0 to {most}"
    )


_UPOS = 3
"""The index of the column of parts of speech in CoNLL-U."""
_CHUNKS = frozenset(("", "NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"))
"""The types of CoNLL-2000's chunks."""


def _conll(lines: Sequence[str]) -> Recognized:
    """The task of a CoNLL file. Of several columns of tags, the one that tags the most words is taken: the
    outer entities, if entities are nested. Chunks do not count as entities."""
    task = Recognized({}, {}, "CoNLL")
    task.add("type", "token-classification", "a word and its tag a line, in CoNLL's form")
    rows = _conll_rows(lines)
    tags = {column: [fields[column] for fields in rows] for column in tag_columns(rows)}
    if is_conllu(rows) and not tags:
        task.add("label", _UPOS, f"the parts of speech; or {_UPOS + 1}: those of the language")
        return Recognized(task.keys | {"tag_scheme": "plain"}, task.comments, "CoNLL-U")
    if not tags:
        task.add("tag_scheme", "plain", "the tags are names, each of one word, such as parts of speech")
        return task
    tagged = {column: len(found) - found.count("O") for column, found in tags.items()}
    entities = [column for column, found in tags.items() if not {tag[2:] for tag in found} <= _CHUNKS]
    best = max(entities or tags, key=lambda column: (tagged[column], column))
    is_last = best == len(rows[0]) - 1
    keys, summary = {} if is_last else {"label": best}, f"CoNLL, tags in column {best}, counted from 0"
    if others := ", ".join(str(column) for column in tags if column != best):
        summary += f"; there are others in {others}"
        key = "type" if is_last else "label"
        task.comments[key] = f"tags {tagged[best]:,} words here; or label: {others}"
    return Recognized(task.keys | keys, task.comments, summary)


def _conll_rows(lines: Sequence[str]) -> list[list[str]]:
    """The fields of the first lines that hold words and have the usual number of fields."""
    rows = [fields for line in lines[:-1] if (fields := conll_fields(line))]
    rows = [fields for fields in rows if not fields[0].startswith(("#", DOCUMENT))]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return [fields for fields in rows if len(fields) == width]


_LIST_NAMES = ("choices", "endings", "options", "answers", "candidates")
_CHOICE_NAMES = ("choice", "ending", "option", "answer", "candidate", "sol", "")
_QUESTIONS = ("question", "query", "ask_for", "question_stem")


def recognize_choices(sample: Sample) -> Recognized | None:
    """The keys of `task`; None if the columns hold no choices, no text before them, or no label."""
    columns = sample.columns
    choices = _find_choices(columns)
    others = [column for column in columns if column not in choices]
    can = [each for each in others if (each.is_named_label or each.is_number) and not each.is_other]
    found = ((each, _first_choice(each, choices)) for each in can if choices)
    label, numbering = next(((label, first) for label, first in found if first is not None), (None, None))
    others = [column for column in others if column is not label]
    texts = _texts(others)
    if not texts or label is None or numbering is None:
        return None
    names = [column.name for column in texts]
    task = Recognized({})
    what = "a list of choices" if len(choices) == 1 else f"{len(choices)} columns of choices"
    task.add("type", "multiple-choice", f"{' and '.join(names)}, {what}, and which of them is right")
    task.keys["text"] = names[0] if len(names) == 1 else names
    task.keys["choices"] = choices[0].name if len(choices) == 1 else [column.name for column in choices]
    task.keys["label"] = label.name
    first, why = numbering
    if first is not None and (first or why or _numbers_among(choices)):
        task.add("first_choice", first, why or "the labels count the choices from 0")
    if further := [column for column in others if column.is_text and column not in texts]:
        task.comments["text"] = f"the likeliest; not read: {names_of(further)}"
    return task


def _find_choices(columns: Sequence[Column]) -> list[Column]:
    """A column of lists of choices, or a column for each choice; empty: there are no choices."""
    for column in columns:
        if column.name.lower() in _LIST_NAMES and column.lists and all(len(v) > 1 for v in column.lists):
            scalars = (isinstance(item, str | int | float) for value in column.lists for item in value)
            return [column] if all(scalars) else []
    filled = [column for column in columns if column.is_string and len(column.values) == column.rows]
    strings = [column for column in filled if not column.is_flags]
    for group in sorted(numbered_groups(strings), key=len, reverse=True):
        bare = re.sub(r"[^a-z]", "", group[0].name.lower())
        if len(group) > 2 or bare.removesuffix("a") in _CHOICE_NAMES:
            return group
    return []


def _texts(columns: Sequence[Column]) -> list[Column]:
    """The columns to read before the choices: a text, a question, both with the text first, or neither."""
    question = next((c for c in columns if c.name.lower() in _QUESTIONS and c.is_string), None)
    if question is not None:
        context = text_column([column for column in columns if column is not question])
        return [question] if context is None else [context, question]
    strings = [column for column in columns if column.is_string and not column.is_number]
    for group in numbered_groups(strings):
        if len(group) == 2 and any(column.is_text for column in group):
            return group
    text = text_column(columns)
    return [] if text is None else [text]


def _first_choice(label: Column, choices: Sequence[Column]) -> tuple[int | None, str] | None:
    """The number of the first choice, and how the label names choices; None: the label does not name them.

    The number is None if labels are letters, names of columns or texts.
    """
    rows: Sequence[Sequence[Any]] = choices[0].lists or []
    if len(choices) > 1:
        rows = list(zip(*(column.values for column in choices), strict=True))
    if len(rows) != len(label.values) or not rows:
        return None
    if label.is_number:
        numbered = list(zip(label.numbers, map(len, rows), strict=True))
        from_0 = all(number in range(size) for number, size in numbered)
        from_1 = all(number - 1 in range(size) for number, size in numbered)
        if from_0 and from_1:
            return 0, "no label tells whether the first choice is 0 or 1; or 1"
        return (0, "") if from_0 else (1, "the labels count the choices from 1") if from_1 else None
    texts = [str(value).strip() for value in label.values]
    letters, names = "ABCDEFGHIJ", [column.name for column in choices]
    is_right = (
        (len(text) == 1 and text.upper() in letters[: len(row)])
        or (len(names) > 1 and text in names)
        or text in [str(item).strip() for item in row]
        for text, row in zip(texts, rows, strict=True)
    )
    return (None, "") if all(is_right) else None


def _numbers_among(choices: Sequence[Column]) -> bool:
    """True if the text of a choice is a number, which could also be the number of a choice."""
    rows = (row for each in choices for row in each.lists or [each.values])
    return any(str(item).isdecimal() for row in rows for item in row)
