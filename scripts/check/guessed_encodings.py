"""The encodings that `bertcli init` guesses, beside those of charset-normalizer, on the tables of the tests.

    pip install charset-normalizer
    python scripts/check/guessed_encodings.py [FILES ...]

The cases: every language and encoding of tests/advice/init/test_encodings.py; those of
tests/corpus/test_bad_bytes.py, whole and with bad bytes; UTF-8 with few bad bytes; and FILES, which should be
UTF-8. A guess is right if the undamaged lines read as they were written, whatever the encoding's name.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import charset_normalizer

from bertcli.advice.init.kinds import detect_encoding
from bertcli.system.errors import UserError
from tests.advice.init.test_encodings import LEGACY
from tests.corpus.test_bad_bytes import ENCODINGS, SPOILED, TEXTS, lines_of, spoiled

Case = tuple[str, bytes, list[str]]
"""Kind, bytes, and lines that a right guess reads among others."""


def cases(files: list[Path]) -> Iterator[Case]:
    """All cases."""
    for text, encoding in LEGACY:
        yield "language and encoding", text.encode(encoding), text.splitlines()
    for encoding, language in ENCODINGS:
        for number in (8, 60):
            lines = lines_of(language, number)
            yield f"{number} lines", "\n".join(lines).encode(encoding), lines
        for bad, where in SPOILED:
            good = [line for number, line in enumerate(lines_of(language)) if number not in bad]
            yield "8 lines, some with bad bytes", spoiled(encoding, language, bad, where), good
    for text in TEXTS.values():
        for bad in (1, 20):
            good = f"{text}\n".encode() * 100
            yield "UTF-8 with bad bytes", good + b"caf\xe9 and na\xefve\n" * bad + good, [text]
    for path in files:
        data = path.read_bytes()
        lines = data.decode("utf-8", "replace").splitlines()
        yield "files", data, [line for line in lines if "\ufffd" not in line]


def ours(data: bytes) -> str | None:
    """The guess of bertcli."""
    try:
        found = detect_encoding(data)
    except UserError:
        return None
    return found and found.name


def theirs(data: bytes) -> str | None:
    """The guess of charset-normalizer."""
    best = charset_normalizer.from_bytes(data).best()
    return best and best.encoding


def is_right(encoding: str | None, data: bytes, lines: list[str]) -> bool:
    """True if the lines are read with this encoding."""
    if encoding is None:
        return False
    return set(lines) <= set(data.decode(encoding, "replace").lstrip("\ufeff").splitlines())


def main() -> None:
    """Print how many cases of each kind either finds, and its time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILES")
    found = list(cases(parser.parse_args().files))
    guessers: dict[str, Callable[[bytes], str | None]] = {"bertcli": ours, "charset-normalizer": theirs}
    for name, guess in guessers.items():
        guess(found[0][1])  # loads what it needs
        start = time.perf_counter()
        right = [is_right(guess(data), data, lines) for _, data, lines in found]
        seconds = time.perf_counter() - start
        print(f"{name}: {sum(right)} of {len(right)} right, {1e3 * seconds / len(right):.0f} ms each")
        for kind in dict.fromkeys(kind for kind, _, _ in found):
            each = [one for one, (other, _, _) in zip(right, found, strict=True) if other == kind]
            print(f"  {kind}: {sum(each)} of {len(each)}")


if __name__ == "__main__":
    sys.exit(main())
