"""Strategies that make bad input of good: damaged bytes, trees of JSON and YAML with junk in them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = "BERTCLI_FUZZ_EXAMPLES"
"""The variable by which `scripts/check/fuzz.py` asks for so many new inputs of each test."""
FEW = 12
"""Inputs of each test in the suite, the same each time."""

fuzzed = settings(
    max_examples=int(os.environ.get(EXAMPLES, FEW)),
    derandomize=EXAMPLES not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType]
)

_DEEP, _LONG_NUMBER = "@deep@", "@long number@"
_RAW = {f'"{_DEEP}"': "[" * 100_000 + "]" * 100_000, f'"{_LONG_NUMBER}"': "9" * 5000}
"""What stands in a text as no `json.dumps` would write it."""

JUNK: Sequence[Any] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 10**12, 2**31, 2**63, 2**64, -(2**63), 10**30),
    *(0.5, 1e-300, 1e308, float("nan"), float("inf"), -float("inf")),
    *("", " ", "\0", "\ud800", "../../outside", "/", ".", "..", "~", "a" * 300, "é\u202e😀[MASK]", "auto"),
    *("no", "1e9", "[PAD]", _DEEP, _LONG_NUMBER),
    *([], {}, [[]], [None], {"": None}, ["a", "a"], {"a": {"b": ["c"]}}, [1, 2, 3]),
)
_junk = st.sampled_from(JUNK) | st.text(max_size=8) | st.integers() | st.floats()


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """`good` with a few bytes changed, cut out, put in or doubled, or cut short."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        kind = draw(st.sampled_from(["flip", "set", "cut", "insert", "double", "truncate"]))
        size = draw(st.sampled_from([1, 2, 4, 8, 40]))
        if kind == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "set":
            data[at : at + size] = draw(st.sampled_from([b"\0", b"\xff", b"\x80", b"\n", b'"', b"9"])) * size
        elif kind == "cut":
            del data[at : at + size]
        elif kind == "insert":
            data[at:at] = draw(st.binary(max_size=size))
        elif kind == "double":
            data[at:at] = data[at : at + size]
        elif kind == "truncate":
            del data[at:]
    return bytes(data)


@st.composite
def mutated(draw: st.DrawFn, tree: Any) -> Any:
    """`tree` (lists, dictionaries, scalars) with some of its nodes replaced, removed, renamed or moved."""
    root = [copy.deepcopy(tree)]
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(root))
        parent, key = places[draw(st.integers(0, len(places) - 1))]
        kind = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "double", "move"]))
        if kind == "replace":
            parent[key] = copy.deepcopy(draw(_junk))
        elif kind == "remove" and parent is not root:
            del parent[key]
        elif kind == "rename" and isinstance(parent, dict):
            parent[
                draw(st.text(max_size=4) | st.sampled_from([k for p, k in places if isinstance(k, str)]))
            ] = parent.pop(key)
        elif kind == "double" and isinstance(parent, list) and parent is not root:
            parent.insert(key, copy.deepcopy(parent[key]))
        elif kind == "move":
            other, other_key = places[draw(st.integers(0, len(places) - 1))]
            parent[key] = copy.deepcopy(other[other_key])
    return root[0]


def _places(root: Any) -> Any:
    """(container, key) of every node, parents first."""
    if isinstance(root, list):
        for i, value in enumerate(root):
            yield root, i
            yield from _places(value)
    elif isinstance(root, dict):
        for key, value in root.items():
            yield root, key
            yield from _places(value)


def as_json(tree: Any) -> str:
    """JSON text of a mutated tree, NaN, half characters and all."""
    text = json.dumps(tree)
    for word, raw in _RAW.items():
        text = text.replace(word, raw)
    return text


def json_files(good: Any) -> st.SearchStrategy[bytes]:
    """The bytes of a JSON file: a tree with junk in it, or damaged text."""
    return mutated(good).map(lambda tree: as_json(tree).encode()) | damaged(json.dumps(good).encode())


@st.composite
def place(draw: st.DrawFn, content: st.SearchStrategy[bytes]) -> bytes | None:
    """Content for a file; None: a folder stands there."""
    return None if draw(st.integers(0, 30)) == 0 else draw(content)


def put(path: os.PathLike[str], content: bytes | None) -> None:
    """Write what `place` drew."""
    if content is None:
        if os.path.lexists(path):
            os.unlink(path)
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(content)
