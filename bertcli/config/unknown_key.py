"""An unknown key of a config -> the keys that were probably meant, in its own section or in another."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from bertcli.config.section import section_in

_LIKE, _ELSEWHERE = 0.5, 0.8
"""How alike two keys must be: in one section, and across sections."""


def unknown_key(schema: type[BaseModel], keys: Sequence[str]) -> str:
    """The problem in words. `keys`: the way from the root of `schema` to the unknown key, which is the last.

    The same name in another section comes first, then a similar one in its own, then one in another.
    """
    *sections, key = keys
    own = schema
    for name in sections:  # a number is a place in a list
        field = own.model_fields.get(name)
        own = (section_in(field.annotation) if field else None) or own
    dotted = list(_keys(schema))
    meant = [name for name in dotted if name.rpartition(".")[2] == key]
    if not meant:
        near = difflib.get_close_matches(key, own.model_fields, n=1, cutoff=_LIKE)
        meant = [".".join([*sections, name]) for name in near]
    if not meant:
        last = [name.rpartition(".")[2] for name in dotted]
        near = difflib.get_close_matches(key, last, n=1, cutoff=_ELSEWHERE)
        meant = [name for name in dotted if name.rpartition(".")[2] in near]
    if meant:
        return f"{'.'.join(keys)}: unknown key; did you mean {_either(meant)}?"
    return f"{'.'.join(keys)}: unknown key; known here: {', '.join(own.model_fields)}"


def _keys(schema: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in schema.model_fields.items():
        yield prefix + name
        if (section := section_in(field.annotation)) is not None:
            yield from _keys(section, f"{prefix}{name}.")


def _either(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
