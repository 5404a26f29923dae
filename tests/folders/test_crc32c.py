import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.folders.tf_checkpoint import crc32c, unmask


def bit_by_bit(data):
    """The definition, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"\0" * 32, 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
    ],
)
def test_the_examples_of_the_rfc(data, crc):
    """RFC 3720, appendix B.4; the last is the usual check value."""
    assert crc32c(data) == crc


@given(st.binary(min_size=4, max_size=700))
def test_every_length_and_any_number_of_lanes(data):
    assert crc32c(data) == bit_by_bit(data)


def test_more_than_the_most_lanes():
    data = bytes(i * 7 % 251 for i in range(200_003))
    assert crc32c(data) == bit_by_bit(data)


def test_a_stored_crc_is_unmasked():
    crc = 0xE3069283
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert unmask(masked) == crc
