"""Tags in any of the usual schemes -> BIO -> entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.table import BadRow, one_spelling

_TO_BIO = {"B": "B", "I": "I", "E": "I", "S": "B", "L": "I", "U": "B"}
"""BIOES (IOBES) marks the last word of an entity with E and a single word with S; BILOU uses L and U."""


def is_tag(tag: str) -> bool:
    """True if this is `O`, or a letter of a scheme, alone or with a hyphen and a type."""
    prefix, hyphen, kind = tag.partition("-")
    return tag == "O" or (prefix in _TO_BIO and bool(hyphen) == bool(kind))


def check_tag(tag: str, where: str) -> None:
    """Raise `BadRow` for a tag of no scheme."""
    if not is_tag(tag):
        raise BadRow(
            f"{where}: {tag!r} is not a tag; expected O, or B or I (BIOES: also E and S; BILOU: L and U) "
            "with a hyphen and the type, such as B-person. If tags are names, such as NOUN, set "
            "task.tag_scheme: plain; if they are numbers, task.label_names: [O, B-person, ...], the name of "
            "each number from 0"
        )


def named(label: str, settings: TaskSettings, where: str, what: str = "label") -> str:
    """The name of a label or tag that is given by its number; other known ones stay as they are.

    Raises `UserError` for a number without a name, or a label that is neither.
    """
    names, skipped = settings.label_names, settings.skip_labels or ()
    known = _spelled((*(names or ()), *skipped))
    if names is None or label in known:
        return known.get(label, label)
    by_number = not any(one_spelling(name).isdecimal() for name in names)  # then 1 is a name, not a place
    if by_number and label.isdecimal() and int(label) < len(names):
        return names[int(label)]
    is_mark = label == "-1" and what == "label"
    marks = '; if it says that there is no label: task.skip_labels: ["-1"]' if is_mark else ""
    number = f", and no number of one, 0 to {len(names) - 1}" if by_number else ""
    raise UserError(f"{where}: the {what} {label!r} is no name of task.label_names{number}{marks}")


@cache
def _spelled(labels: tuple[str, ...]) -> dict[str, str]:
    """Each of these labels by the one spelling that labels of files are given."""
    return {one_spelling(label): label for label in labels}


def read_tags(tags: Sequence[str], settings: TaskSettings, where: str) -> tuple[str, ...]:
    """One sentence's tags in BIO. Raises `BadRow` for a tag of no scheme, `UserError` for one that
    `label_names` lacks."""
    tags = [named(tag, settings, where, what="tag") for tag in tags]
    if settings.tag_scheme == "plain":
        return tuple(f"B-{tag}" for tag in tags)
    for tag in tags:
        check_tag(tag, where)
    return to_bio(tags)


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """One sentence's tags, each of which `is_tag`, in BIO (IOB2; Tjong Kim Sang and Veenstra 1999).

    The scheme need not be known: each letter means the same in all schemes, except for I, which in IOB1 also
    begins an entity. Here I begins one in any scheme if the tag before it is not of the same type.
    """
    bio: list[str] = []
    before = "O"
    for tag in tags:
        if tag != "O":
            kind = tag[1:]
            continues = before != "O" and before[1:] == kind
            tag = (_TO_BIO[tag[0]] if continues else "B") + kind
        bio.append(tag)
        before = tag
    return tuple(bio)


@dataclass(frozen=True)
class Chunk:
    """An entity as words `start` to `end` (exclusive) of its sentence."""

    type: str
    start: int
    end: int


def chunks(tags: Sequence[str]) -> list[Chunk]:
    """The entities of one sentence's BIO tags, which may be ill-formed.

    The rules of conlleval (Tjong Kim Sang and De Meulder 2003): an entity starts at every B, and at an I
    after another type or after a word outside; it ends before the next start or word outside. Any tag other
    than B and I is outside.
    """
    found: list[Chunk] = []
    start = 0
    open_type: str | None = None
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        if open_type is not None and not (prefix == "I" and kind == open_type):
            found.append(Chunk(open_type, start, i))
            open_type = None
        if open_type is None and prefix in ("B", "I"):
            open_type, start = kind, i
    return found
