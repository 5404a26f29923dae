"""Which keys of a config code reads, found by running it: each section notes what is asked of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

from bertcli.config.section import Section

Key = tuple[str, str]
"""The class of a section, and the name of a key in it."""


@contextmanager
def recorded_reads() -> Iterator[set[Key]]:
    """The keys that are read while the context lasts, by code that names them.

    That a config checks itself (`_check...`) is no use of a key, nor is code that copies every key
    (`getattr` over names), for neither names the key outside the checks.
    """
    reads: set[Key] = set()
    plain = Section.__getattribute__

    def noted(self: Section, name: str) -> Any:
        caller = sys._getframe(1).f_code
        is_named = name in caller.co_names and not caller.co_name.startswith("_check")
        if is_named and name in type(self).model_fields:
            reads.add((owner(type(self), name), name))
        return plain(self, name)

    Section.__getattribute__ = noted
    try:
        yield reads
    finally:
        Section.__getattribute__ = plain


def all_keys(root: type[Section]) -> set[Key]:
    """The keys of a config and of its sections, sections themselves left out."""
    keys: set[Key] = set()
    for name, field in root.model_fields.items():
        kinds: list[Any] = [field.annotation, *get_args(field.annotation)]
        sections = [kind for kind in kinds if is_section(kind)]
        for section in sections:
            keys |= all_keys(section)
        if not sections:
            keys.add((owner(root, name), name))
    return keys


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def owner(kind: type[Section], name: str) -> str:
    """The class in which a section's key was first written, without `[Never]`."""
    owners = [each for each in kind.__mro__ if name in getattr(each, "__annotations__", {})]
    return owners[-1].__name__.partition("[")[0]
