"""Tags in any of the usual schemes -> BIO: B begins an entity, I goes on with it, O is outside."""

from __future__ import annotations

from collections.abc import Sequence

from bertcli.examples.bad_rows import BadRow

_TO_BIO = {"B": "B", "I": "I", "E": "I", "S": "B", "L": "I", "U": "B"}
"""BIOES (IOBES) marks the end of an entity and single words with E and S, BILOU with L and U."""


def is_tag(tag: str) -> bool:
    """Whether this is `O`, or a letter of one of the schemes, alone or before a hyphen and a type."""
    prefix, hyphen, kind = tag.partition("-")
    return tag == "O" or (prefix in _TO_BIO and bool(hyphen) == bool(kind))


def check_tag(tag: str, where: str) -> None:
    """Raises `BadRow` for what is a tag in no scheme."""
    if not is_tag(tag):
        raise BadRow(
            f"{where}: {tag!r} is no tag; expected O, or B or I (BIOES: also E and S; BILOU: L and U) before "
            "a hyphen and the type, such as B-person"
        )


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """One sentence's tags, each of which `is_tag`, in BIO (IOB2; Tjong Kim Sang and Veenstra 1999).

    The scheme need not be known: no letter means one thing in one scheme and another in the next, but for
    IOB1, where I also begins an entity; and so it does in any scheme where there is nothing to go on with.
    """
    bio: list[str] = []
    before = "O"
    for tag in tags:
        if tag != "O":
            kind = tag[1:]
            goes_on = before != "O" and before[1:] == kind
            tag = (_TO_BIO[tag[0]] if goes_on else "B") + kind
        bio.append(tag)
        before = tag
    return tuple(bio)
