"""Tags in any of the usual schemes -> BIO: B begins an entity, I continues it, O is outside."""

from __future__ import annotations

from collections.abc import Sequence

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
            "with a hyphen and the type, such as B-person"
        )


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
