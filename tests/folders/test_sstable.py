import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.folders.tf_checkpoint import read_table
from tests.folders.tables import table

ENTRIES = {f"bert/encoder/layer_{i}/kernel".encode(): bytes([i]) * i for i in range(20)}


@given(
    st.dictionaries(st.binary(max_size=12), st.binary(max_size=200), min_size=1, max_size=40),
    st.integers(1, 9),
)
def test_what_was_written_is_read_again(entries, per_block):
    assert read_table(table(entries, per_block)) == entries


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda data: b"", "does not end with the footer"),
        (lambda data: data[:-1], "does not end with the footer"),
        (lambda data: b"a text file\n" * 9, "does not end with the footer"),
        (
            lambda data: data[:30] + bytes([data[30] ^ 1]) + data[31:],
            "checksum of the block at byte 0 is wrong",
        ),
        (lambda data: data[-48:], "a block is cut off"),
    ],
)
def test_a_damaged_table(spoil, reason):
    with pytest.raises(ValueError, match=reason):
        read_table(spoil(table(ENTRIES)))


def test_no_damaged_byte_changes_what_is_read():
    data, refused = table(ENTRIES), 0
    for i in range(len(data)):
        try:
            assert read_table(data[:i] + bytes([data[i] ^ 0x10]) + data[i + 1 :]) == ENTRIES
        except ValueError:
            refused += 1
    assert refused > 0.9 * (len(data) - 48)  # all but the meta-index, which is not read


@pytest.mark.parametrize(("compression", "name"), [(1, "snappy"), (2, "zstd"), (9, "9")])
def test_a_compressed_table_is_refused_by_name(compression, name):
    with pytest.raises(ValueError, match=rf"it is compressed \({name}\)"):
        read_table(table(ENTRIES, compression=compression))
