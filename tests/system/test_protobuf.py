import pytest

from bertcli.system.formats import read_fields, read_varint


@pytest.mark.parametrize(
    ("data", "number"), [(b"\x00", 0), (b"\x7f", 127), (b"\xac\x02", 300), (b"\xff" * 9 + b"\x01", 2**64 - 1)]
)
def test_numbers(data, number):
    assert read_varint(data + b"\x55", 0) == (number, len(data))


def test_fields_of_every_type_in_their_order():
    message = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d\x01\x00\x00\x00" + b"\x21" + b"\x02" + b"\0" * 7
    assert list(read_fields(message)) == [(1, 150), (2, b"abc"), (3, 1), (4, 2)]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\x08\x96", "a number is cut off"),
        (b"\x08" + b"\xff" * 11, "more than ten bytes"),
        (b"\x12\x04abc", "a field is cut off"),
        (b"\x1d\x01\x00", "a field is cut off"),
        (b"\x0b", "unknown wire type 3"),
    ],
)
def test_what_is_no_message(message, reason):
    with pytest.raises(ValueError, match=reason):
        list(read_fields(message))
