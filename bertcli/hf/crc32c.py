"""Bytes -> their CRC-32C, the checksum inside TensorFlow checkpoints, fast enough for a full BERT."""

from __future__ import annotations

import numpy as np

_POLYNOMIAL = np.uint32(0x82F63B78)
"""Castagnoli's polynomial, its bits in reverse (RFC 3720, appendix B.4)."""
_MOST_LANES = 1024
_SHORTEST_LANE = 64


def crc32c(data: bytes | np.ndarray) -> int:
    """CRC-32C of four bytes or more.

    Except for its initial value a CRC is linear over GF(2), and leading zeros do not change it. So the bytes
    are cut into equal lanes. Their CRCs are computed in parallel and then joined in pairs:
    crc(AB) = crc(A followed by one zero per byte of B) xor crc(B).
    """
    message = np.frombuffer(data, dtype=np.uint8)
    lanes = 1
    while lanes < _MOST_LANES and len(message) >= 2 * lanes * _SHORTEST_LANE:
        lanes *= 2
    padding = -len(message) % (2 * lanes)
    padded = np.concatenate([np.zeros(padding, np.uint8), message])
    padded[padding : padding + 4] ^= 0xFF  # the initial value of all ones
    words = padded.view("<u2").reshape(lanes, -1)

    crcs = _advance(np.zeros(lanes, np.uint32), words)
    # How a lane of zeros changes each single bit; by linearity, any CRC.
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    shift = _advance(bits, np.zeros((32, words.shape[1]), np.uint16))
    while len(crcs) > 1:
        crcs = _apply(shift, crcs[0::2]) ^ crcs[1::2]
        shift = _apply(shift, shift)
    return int(crcs[0]) ^ 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The CRC from its stored form: TensorFlow rotates it and adds a constant, as LevelDB does."""
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def _remainders() -> np.ndarray:
    """The CRC of each 16-bit word."""
    crcs = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        crcs = crcs >> 1 ^ (crcs & 1) * _POLYNOMIAL
    return crcs


_REMAINDERS = _remainders()


def _advance(crcs: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The CRC of each lane [lanes] after its words [lanes, words] of 16 bits."""
    for column in words.T:
        crcs = _REMAINDERS.take(crcs.astype(np.uint16) ^ column) ^ crcs >> 16
    return crcs


def _apply(shift: np.ndarray, crcs: np.ndarray) -> np.ndarray:
    """The linear map that sends bit i to `shift[i]`, on each of `crcs`."""
    moved = np.zeros_like(crcs)
    for bit in range(32):
        moved ^= (crcs >> bit & 1) * shift[bit]
    return moved
