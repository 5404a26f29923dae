"""What of JSON Schema the schemas of configs use: a value -> what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_SAYS_NOTHING = {"$schema", "$defs", "title", "description", "default"}
_KNOWN = {
    *_SAYS_NOTHING,
    *("$ref", "anyOf", "const", "enum", "type", "properties", "required", "additionalProperties"),
    *("items", "prefixItems", "minItems", "maxItems", "maxLength", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], where: str = "") -> Iterator[str]:
    """Each problem, with its place. Raises `AssertionError` for a keyword that this does not know."""
    assert schema.keys() <= _KNOWN, schema.keys() - _KNOWN
    if "$ref" in schema:
        yield from problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, where=where)
        return
    if "anyOf" in schema and all(any(problems(value, each, root)) for each in schema["anyOf"]):
        yield f"{where}: {value!r} is none of {schema['anyOf']}"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "type" in schema:
        is_number = schema["type"] in ("integer", "number")
        if not isinstance(value, _TYPES[schema["type"]]) or (is_number and isinstance(value, bool)):
            yield f"{where}: {value!r} is no {schema['type']}"
            return
    if isinstance(value, dict):
        yield from _in_object(value, schema, root, where=where)
    elif isinstance(value, list):
        yield from _in_list(value, schema, root, where=where)
    elif isinstance(value, int | float):
        yield from _out_of_range(value, schema, where)
    elif isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{where}: {value!r} has more than {schema['maxLength']} characters"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"


def _in_object(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], where: str
) -> Iterator[str]:
    own, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{where}.{name}: is missing" for name in schema.get("required", []) if name not in value)
    for name, item in value.items():
        if name in own:
            yield from problems(item, own[name], root, where=f"{where}.{name}")
        elif others is False:
            yield f"{where}.{name}: is unknown"
        elif isinstance(others, dict):
            yield from problems(item, others, root, where=f"{where}.{name}")


def _in_list(value: list[Any], schema: dict[str, Any], root: dict[str, Any], where: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{where}: has {len(value)} items"
    each = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
    for number, (item, of_item) in enumerate(zip(value, each, strict=False)):
        yield from problems(item, of_item, root, where=f"{where}[{number}]")


def _out_of_range(value: float, schema: dict[str, Any], where: str) -> Iterator[str]:
    is_inside = (
        value >= schema.get("minimum", value)
        and value <= schema.get("maximum", value)
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    )
    if not is_inside:
        yield f"{where}: {value} is out of range"
