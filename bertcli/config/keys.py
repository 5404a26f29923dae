"""The keys of a config: values, default and meaning of each; the likely ones for an unknown key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import Section, section_in
from bertcli.config.yaml_text import Block, Line
from bertcli.system.terminal import either

CONFIGS: dict[str, type[Section]] = {"pretrain": PretrainConfig, "finetune": FinetuneConfig}
"""Command -> the config that the command reads."""
_TYPES = {"integer": "integer", "number": "number", "string": "text", "boolean": "true or false"}
_LIMITS = {
    "minimum": "{} or more",
    "exclusiveMinimum": "over {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "under {}",
}


class _WithoutTitles(GenerateJsonSchema):
    """JSON schema without titles, which would only repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(kind: type[Section]) -> dict[str, Any]:
    """The JSON schema of a section, for editors: types, limits, defaults and meanings."""
    schema = kind.model_json_schema(schema_generator=_WithoutTitles)
    return {"$schema": _WithoutTitles.schema_dialect, **schema}


def keys_of(kind: type[Section], name: str = "", is_out: bool = False) -> Block:
    """The keys of a section and then the sections in it, each in the order of their fields.

    A key's line has its default, and comments: its meaning above, its possible values beside. A section that
    is null by default, or a list of none, is out: the config is complete without it.
    """
    properties = json_schema(kind)["properties"]
    keys, sections = list[Line | Block](), list[Line | Block]()
    for field_name, field in kind.model_fields.items():
        inner = section_in(field.annotation)
        if inner is not None:
            is_list = get_origin(field.annotation) is tuple
            sections.append(replace(keys_of(inner, field_name, is_out=not field.default), is_list=is_list))
            continue
        found = properties[field_name]
        keys.append(
            Line(
                field_name,
                found.get("default"),
                above=" ".join(found.get("description", "").split()),
                beside=_values(found),
                is_required=field.is_required(),
            )
        )
    meaning = " ".join((kind.__doc__ or "").split())
    return Block(name, [*keys, *sections], above=meaning, is_out=is_out)


def _values(schema: dict[str, Any]) -> str:
    """The possible values of a key, in words: `integer, 16 or more; null`."""
    if "anyOf" in schema:
        given = schema["anyOf"]
        pairs = [each for each in given if each.get("prefixItems", [None])[0] in given]
        return "; ".join("a list of two of these" if each in pairs else _values(each) for each in given)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "prefixItems" in schema:
        return f"a list of {len(schema['prefixItems'])}: {_values(schema['prefixItems'][0])}"
    if schema["type"] == "array":
        return f"a list of {_values(schema['items'])}"
    if schema["type"] == "object":
        return f"a mapping to {_values(schema['additionalProperties'])}"
    kind: str = schema["type"]
    return ", ".join([_TYPES.get(kind, kind), *_limits(schema)])


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    if "minimum" in schema and "maximum" in schema:
        yield f"{_number(schema['minimum'])} to {_number(schema['maximum'])}"
        return
    for name, words in _LIMITS.items():
        if name in schema:
            limit = schema[name]
            yield words.format(_number(limit))


def _number(limit: float) -> str:
    if limit == 2**63:
        return "2^63"
    return f"{limit:,.0f}" if 10**4 <= limit <= 10**15 else f"{limit:g}"


_LIKE, _ELSEWHERE = 0.5, 0.8
"""Lowest similarity (0 to 1) of two keys that may be confused: in one section, and across sections."""


def unknown_key(schema: type[BaseModel], keys: Sequence[str]) -> str:
    """The problem in words. `keys`: the path from the root of `schema` to the unknown key, which is the last.

    The same name in another section is suggested first, then a similar name in the key's own section, then a
    similar name in another section.
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
        return f"{'.'.join(keys)}: unknown key; did you mean {either(meant)}?"
    return f"{'.'.join(keys)}: unknown key; known here: {', '.join(own.model_fields)}"


def _keys(schema: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in schema.model_fields.items():
        yield prefix + name
        if (section := section_in(field.annotation)) is not None:
            yield from _keys(section, f"{prefix}{name}.")
