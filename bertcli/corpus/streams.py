"""A file, plain or compressed -> its lines of text, read one block at a time."""

import codecs
import gzip
import importlib
import itertools
import math
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from bertcli.config.section import Decoding
from bertcli.corpus import encodings
from bertcli.corpus.files import START_BYTES, describe_kind
from bertcli.system.errors import UserError
from bertcli.system.files import open_input
from bertcli.system.remote import InputPath

BLOCK = 1 << 20
"""The bytes that are decompressed at once."""
LONGEST_LINE = 64 << 20
"""The most characters of a line. A longer one is not text; its sentences and ids might not fit in memory."""
COUNTED = 256 << 20
"""The characters after the first bad byte in which other bad bytes are counted for the message."""

_ESCAPES = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7")
"""Codecs of Python that write any text in ASCII; they are no encodings of text files."""

Progress = Callable[[int], None]
"""A function that is called with the number of bytes read from the disk since its last call."""


def silent(_: int) -> None:
    """A `Progress` that shows nothing."""


def all_lines(path: InputPath, decoding: Decoding, progress: Progress = silent) -> Iterator[str]:
    """The lines of a text file, without line ends and without a byte order mark. The mark of UTF-16 or UTF-32
    overrides the encoding UTF-8.

    Only a newline ends a line (U+2028 and form feeds are text). A carriage return before it stays; the
    caller strips it with other white space. The setting `skip-line` gives lines with bad bytes too, in a form
    for which `is_damaged` is true.

    Raises:
        UserError: an unknown encoding; a file that is not text (`describe_kind`); with `refuse`, bytes that
            are not in the encoding, with line and offset in the (decompressed) file; an unreadable file;
            damaged or truncated compression; a line that is too long.
    """
    rest, has_newline = "", False
    for text in decoded_blocks(path, decoding, progress):
        *lines, tail = text.split("\n")
        if lines:
            has_newline = True
            lines[0], rest = rest + lines[0], tail
            yield from lines
        else:
            rest += tail
        if len(rest) > LONGEST_LINE:
            raise UserError(
                f"{path}: a line of more than {LONGEST_LINE:,} characters; a paragraph, sentence or JSON "
                "object a line was expected. Break the text into lines first"
            )
    if not has_newline and rest.count("\r") > 1:
        raise UserError(
            f"{path}: its lines end with a carriage return alone, as on old Macs; convert it first: "
            f"tr '\\r' '\\n' < {path.name} > converted"
        )
    if rest:
        yield rest


def numbered_lines(
    path: InputPath, decoding: Decoding, progress: Progress = silent
) -> Iterator[tuple[int, str]]:
    """The lines as `all_lines` gives them, each with its number from 1; `skip-line` omits damaged lines."""
    numbered = enumerate(all_lines(path, decoding, progress), start=1)
    if decoding.bad_bytes != "skip-line":
        return numbered
    return ((number, line) for number, line in numbered if not encodings.is_damaged(line))


def read_lines(path: InputPath, decoding: Decoding, progress: Progress = silent) -> Iterator[str]:
    """The lines as `numbered_lines` gives them, without the numbers."""
    return (line for _, line in numbered_lines(path, decoding, progress))


def read_text(path: InputPath, decoding: Decoding) -> str:
    """The full text of a file, for formats that cannot be read in pieces.

    Raises `UserError` as `all_lines` does, and for bad bytes under `skip-line`.
    """
    text = "".join(decoded_blocks(path, decoding, silent))
    if decoding.bad_bytes == "skip-line" and encodings.is_damaged(text):
        raise UserError(
            f"{path}: holds bytes that are not {decoding.encoding}, and as one text of JSON it has no lines "
            f"that could be left out; set {decoding.section}.bad_bytes: replace"
        )
    return text


def decoded_blocks(path: InputPath, decoding: Decoding, progress: Progress) -> Iterator[str]:
    """The text in blocks, without a byte order mark; blocks may be empty. Raises as `all_lines` does."""
    encoding = decoding.encoding
    errors = "strict" if decoding.bad_bytes == "refuse" else encodings.BAD_BYTES_KEPT
    try:
        "a".encode(encoding)  # raises LookupError also for codecs that do not encode text
        if codecs.lookup(encoding).name in _ESCAPES or codecs.lookup(encoding).incrementaldecoder is None:
            raise LookupError
    except (LookupError, ValueError):  # ValueError: a NUL in the name, or a codec that refuses everything
        raise UserError(
            f"{decoding.key}: {encoding!r} is not an encoding of text files that Python knows; common: "
            "utf-8, latin-1, cp1252, utf-16, gb18030, shift_jis"
        ) from None
    decoder, offset, is_start = None, 0, True
    for block in itertools.chain(read_blocks(path, progress, BLOCK), [b""]):  # the empty one ends the text
        if decoder is None:
            _refuse_non_text(path, block)
            decoder = encodings.new_decoder(encoding, block, errors)
            encoding = _encoding_of(path, block, encoding, key=decoding.key)
        held_back = len(decoder.getstate()[0])  # bytes of a character that the last block cut
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise _wrong_bytes(path, decoding, encoding, start=offset - held_back, error=error) from None
        except UnicodeError:  # UTF-16 without the mark for the order of its bytes
            raise UserError(
                f"{path}: does not begin with a byte order mark, which {encoding} needs. If it is UTF-16 "
                f"without one, set {decoding.key} to utf-16-le or utf-16-be; else name its encoding there"
            ) from None
        if decoding.bad_bytes == "replace" and encodings.is_damaged(text):
            text = encodings.with_replaced(text)
        yield text.removeprefix("\ufeff") if is_start else text
        is_start = is_start and not text
        offset += len(block)


def _encoding_of(path: InputPath, start: bytes, encoding: str, key: str) -> str:
    """The encoding of a file with this start. Raises `UserError` if it does not look like `encoding`."""
    wide = encodings.wide_encoding(start)
    if wide is None or b"\0" in "a".encode(encoding):
        return encoding
    if encodings.marked_encoding(start) and encodings.reads_marks(encoding):
        return wide
    raise UserError(f"{path}: begins like {wide.upper()[:6]}: set {key}: {wide}")


def deciding_mark(path: InputPath, encoding: str) -> str | None:
    """The encoding utf-16 or utf-32 if a file's byte order mark overrides `encoding`; None if there is no
    such mark, or if the file cannot be read."""
    try:
        start = next(read_blocks(path, silent, START_BYTES), b"")
        return encodings.marked_encoding(start) if encodings.reads_marks(encoding) else None
    except (UserError, LookupError):
        return None


def _refuse_non_text(path: InputPath, start: bytes) -> None:
    kind = describe_kind(start)
    if kind is not None:
        what = "its content is" if path.suffix in (".gz", ".zst") else "this is"
        raise UserError(f"{path}: {what} {kind.name}, not text; {kind.mend}")


def _wrong_bytes(
    path: InputPath, decoding: Decoding, encoding: str, start: int, error: UnicodeDecodeError
) -> UserError:
    wrong = bytes(error.object[error.start : error.end])
    bad = find_bad_lines(path, decoding, most=start + COUNTED)
    return UserError(
        f"{path}, line {bad.first_line:,}: byte {start + error.start} (0x{wrong[:4].hex()}) is not "
        f"{encoding}: {error.reason}; {bad.share_line()}. {encodings.bad_bytes_advice(decoding)}"
    )


def find_bad_lines(
    path: InputPath, decoding: Decoding, progress: Progress = silent, most: float = math.inf
) -> encodings.BadLines:
    """The lines with bad bytes in a file, or in about its first `most` characters.

    Raises `UserError` as `all_lines` does, but not for bad bytes.
    """
    bad, last = encodings.BadLines(deciding_mark(path, decoding.encoding) or decoding.encoding), ""
    for text in decoded_blocks(path, decoding._replace(bad_bytes="skip-line"), progress):
        if encodings.is_damaged(text):
            for number, part in enumerate(text.split("\n"), start=bad.lines):
                if encodings.is_damaged(part):
                    bad.add(number, part)
        bad.lines, last = bad.lines + text.count("\n"), text or last
        most -= len(text)
        if most <= 0:
            bad.is_all = False
            break
    bad.lines -= last.endswith("\n")
    return bad


def read_blocks(path: InputPath, progress: Progress, size: int) -> Iterator[bytes]:
    """The bytes of a file in blocks of about `size`, decompressed if its name ends in .gz or .zst.

    Raises `UserError` for an unreadable file, and for damaged or truncated compression.
    """
    try:
        with open_input(path) as raw:
            position = 0
            for block in _blocks(path, raw, size):
                yield block
                if raw.seekable():  # a pipe has no position
                    progress(raw.tell() - position)
                    position = raw.tell()
    except EOFError:
        raise UserError(
            f"{path}: the .gz ends in mid-stream: it is truncated; copy or download it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"{path}: not a readable .gz: {error}; if it is plain text, drop the suffix"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _blocks(path: InputPath, raw: IO[bytes], size: int) -> Iterator[bytes]:
    if path.suffix == ".zst":
        yield from _zst_blocks(path, raw, size // 8)
        return
    stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
    while block := stream.read(size):
        yield block


def _zst_blocks(path: InputPath, raw: IO[bytes], size: int) -> Iterator[bytes]:
    """The blocks of one frame after the other, with a check of each frame's end: the library's own reader
    accepts a truncated file. `size` is the number of compressed bytes read at once."""
    zstandard = import_extra("zstandard", "zstd", f"{path} is compressed with Zstandard")
    decompressor: Any = None
    data = b""
    while data or (data := raw.read(size)):
        if decompressor is None:
            decompressor = zstandard.ZstdDecompressor().decompressobj()
        try:
            block = decompressor.decompress(data)
        except zstandard.ZstdError as error:
            raise UserError(
                f"{path}: not a readable .zst: {error}; if it is plain text, drop the suffix"
            ) from None
        data = b""
        if decompressor.eof:
            data, decompressor = decompressor.unused_data, None
        if block:
            yield block
    if decompressor is not None:
        raise UserError(f"{path}: the .zst ends in mid-stream: it is truncated; copy or download it again")


def import_extra(module: str, extra: str, reason: str, doing: str = "reading that") -> Any:
    """The module of an optional dependency.

    Raises a `UserError` that says how to install it, if it or a module that it needs is missing or broken.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        missing = (error.name or "").partition(".")[0]
        cause = f"{package} is not installed"
        if not isinstance(error, ModuleNotFoundError):
            cause = f"{package} cannot be imported ({error})"
        elif missing not in ("", package):
            cause = f"{missing}, which {package} imports, is not installed"
        raise UserError(f"{reason}, and {cause}; {doing} needs: pip install 'bertcli[{extra}]'") from None


def check_file_extras(path: InputPath, is_parquet: bool) -> None:
    """Raise `UserError` if a package for reading this file is missing."""
    if is_parquet:
        import_extra("pyarrow.parquet", "parquet", f"{path} is to be read as Parquet")
    elif path.suffix == ".zst":
        import_extra("zstandard", "zstd", f"{path} is compressed with Zstandard")
