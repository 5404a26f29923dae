"""A .npy of vectors with junk in it: read as numbers, or one message."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from bertcli.inference.vectors import VectorFile
from bertcli.tasks.examples import TextExample
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import damaged, fuzzed, place, put

HIDDEN, TEXTS = 4, 3


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def with_header(header: str) -> bytes:
    """A file whose header says anything, before numbers enough for the good one."""
    text = header.encode("latin-1", "replace")[:60_000] + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(4 * HIDDEN * TEXTS)


GOOD = npy(np.arange(HIDDEN * TEXTS, dtype=np.float32).reshape(TEXTS, HIDDEN))
dtypes = st.sampled_from(["f2", "f4", "f8", ">f4", "i4", "u1", "c8", "U3", "M8[s]", "O", "V4", "b1", "g"])
sizes = st.integers(-2, 5) | st.sampled_from([2**31, 2**62, 2**63, 2**64, 10**30])
headers = st.builds(
    "{{'descr': {!r}, 'fortran_order': {}, 'shape': {}, }}".format,
    dtypes,
    st.sampled_from(["True", "False", "None", "'no'"]),
    st.lists(sizes, max_size=3).map(tuple) | st.sampled_from(["(", "(1e3, 4)", "3", "['a']"]),
)
arrays = st.builds(
    lambda dtype, shape: npy(np.zeros(shape, dtype)),
    dtypes.filter(lambda name: name != "O"),
    st.lists(st.integers(0, 4), max_size=3),
)


def read_vectors(path: Path) -> None:
    vectors = VectorFile(path, HIDDEN)
    for number in range(TEXTS):
        vectors.take([TextExample(f"text {number}", {}, ("a",), None)])
    vectors.check_end()


@fuzzed
@example(content=with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "(" * 5000))
@example(content=with_header("-" * 50_000 + "1"))
@given(place(st.just(GOOD) | damaged(GOOD) | headers.map(with_header) | arrays | st.text().map(with_header)))
def test_vectors(content: bytes | None) -> None:
    with scratch() as folder:
        put(folder / "vectors.npy", content)
        endure("vectors", folder, lambda: read_vectors(folder / "vectors.npy"))
