"""Tags in any of the usual schemes -> BIO: B begins an entity, I continues it, O is outside."""

from __future__ import annotations

from collections.abc import Sequence

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow

_TO_BIO = {"B": "B", "I": "I", "E": "I", "S": "B", "L": "I", "U": "B"}
"""BIOES (IOBES) marks the last word of an entity with E and a single word with S; BILOU uses L and U."""


def is_tag(tag: str) -> bool:
    """Whether this is `O`, or a letter of a scheme, alone or with a hyphen and a type."""
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


def read_tags(tags: Sequence[str], settings: TaskSettings, where: str) -> tuple[str, ...]:
    """One sentence's tags in BIO. Raises `BadRow` for a tag of no scheme, `UserError` for a nameless one."""
    names = settings.label_names
    if names is not None:
        wrong = next(
            (t for t in tags if t not in names and not (t.isdecimal() and int(t) < len(names))), None
        )
        if wrong is not None:
            raise UserError(
                f"{where}: the tag {wrong!r} is no name of task.label_names, and no number of one, 0 to "
                f"{len(names) - 1}"
            )
        tags = [tag if tag in names else names[int(tag)] for tag in tags]
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
