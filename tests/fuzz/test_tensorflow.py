"""TensorFlow checkpoints with junk in index, data, sizes or vocabulary: the model, or one message."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from bertcli.folders.convert import convert, find_tf_checkpoint, read_tf_checkpoint
from bertcli.folders.tf_checkpoint import read_table
from tests.folders.tables import table, varint
from tests.fuzz.good import copy_of, good_model, good_tensorflow
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import damaged, fuzzed, json_files, place, put

PREFIX = "bert_model.ckpt"
INDEX = (good_tensorflow() / f"{PREFIX}.index").read_bytes()
DATA = (good_tensorflow() / f"{PREFIX}.data-00000-of-00001").read_bytes()
CONFIG = json.loads((good_tensorflow() / "bert_config.json").read_text())
ENTRIES = read_table(INDEX)

huge = st.sampled_from([0, 1, 3, 8, 100, 2**20, 2**31, 2**40, 2**62, 2**64, 2**69])
fields = st.tuples(st.integers(0, 8), huge).map(lambda field: varint(field[0] << 3) + varint(field[1]))


@st.composite
def indexes(draw: st.DrawFn) -> bytes:
    """A table in order, its checksums right, with junk in what its entries say."""
    entries = dict(ENTRIES)
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(entries)))
        way = draw(st.sampled_from(["damage", "fields", "remove", "rename"]))
        if way == "damage":
            entries[name] = draw(damaged(entries[name]))
        elif way == "fields":
            entries[name] += draw(st.lists(fields, min_size=1, max_size=3).map(b"".join))
        elif len(entries) > 1:
            value = entries.pop(name)
            if way == "rename":
                entries[draw(st.binary(max_size=9))] = value
    return table(
        entries, per_block=draw(st.integers(1, 40)), compression=draw(st.sampled_from([0, 0, 0, 1, 9]))
    )


def use(files: dict[str, bytes | None]) -> None:
    good_model()  # whose first load has torch make a folder of its own
    with scratch() as folder:
        copy = copy_of(good_tensorflow(), folder)
        for name, content in files.items():
            (copy / name).unlink(missing_ok=True)
            put(copy / name, content)

        def read() -> None:
            prefix = find_tf_checkpoint(copy)
            if prefix is not None:
                read_tf_checkpoint(prefix, None)

        endure("TensorFlow read", folder, read)
        endure("TensorFlow converted", folder, lambda: convert(copy, folder / "new", None))


@fuzzed
@given(indexes())
def test_what_an_index_says(content: bytes) -> None:
    use({f"{PREFIX}.index": content})


@fuzzed
@given(place(damaged(INDEX)), place(damaged(DATA)))
def test_damaged_bytes(index: bytes | None, data: bytes | None) -> None:
    use({f"{PREFIX}.index": index})
    use({f"{PREFIX}.data-00000-of-00001": data})


@fuzzed
@given(st.binary(max_size=80))
def test_a_table_of_any_bytes(content: bytes) -> None:
    magic = 0xDB4775248B80FB57.to_bytes(8, "little")
    use({f"{PREFIX}.index": content.ljust(40, b"\0") + magic})


@fuzzed
@given(place(json_files(CONFIG)), place(damaged((good_tensorflow() / "vocab.txt").read_bytes())))
def test_what_stands_beside_it(config: bytes | None, vocabulary: bytes | None) -> None:
    use({"bert_config.json": config})
    use({"vocab.txt": vocabulary})
