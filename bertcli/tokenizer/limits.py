"""Limits on a tokenizer's files, checked before the library reads them, because it would abort or not end."""

import base64
import binascii
import json
import math
import os
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import IO, Any, TypeVar

from bertcli.system.errors import UserError
from bertcli.tokenizer.normalize import OWN_PATTERNS

LARGEST_VOCABULARY = 1 << 24
"""The most entries of a vocabulary; each id takes memory, even an id without a piece."""
_LONGEST_PIECE = 4096
"""The most characters of a piece. The library recurses once per byte of a piece, and its stack is limited."""
_LARGEST_CHARSMAP = 1 << 24
"""The most bytes of a table of characters."""
_MOST_GROWTH = 10_000
"""The most characters that a normalizer may make of one."""
_MEND = "Copy or download it again"


def check_pipeline(text: str, where: str) -> None:
    """Raise `UserError` for a `tokenizer.json` beyond the limits; the library reports all other errors."""
    try:
        pipeline = json.loads(text)
    except (ValueError, RecursionError):
        return
    model = pipeline.get("model") if isinstance(pipeline, Mapping) else None
    if not isinstance(model, Mapping):
        return
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, Mapping):
        check_ids(vocabulary, where)
    elif isinstance(vocabulary, Sequence):
        check_scores([tuple(entry) for entry in vocabulary if _is_scored(entry)], where)
        if model.get("unk_id") is None:
            raise UserError(f"{where}: unk_id is missing, so that some texts could not be encoded. {_MEND}")
    for part in ("normalizer", "decoder"):
        steps = list(_steps(pipeline.get(part)))
        for step in steps:
            if isinstance(table := step.get("precompiled_charsmap"), str):
                try:
                    check_charsmap(base64.b64decode(table), where)
                except binascii.Error:
                    continue
        if (grown := _growth(steps)) > _MOST_GROWTH:
            raise UserError(
                f"{where}: its {part} may make {grown:,.0f} characters of one; up to {_MOST_GROWTH:,} are "
                "supported. Correct its rules, or give another tokenizer"
            )


def check_ids(vocabulary: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if a piece is too long, or has no id, another piece's id, or one beyond the limit."""
    _check_lengths(vocabulary, where)
    owners: dict[Any, str] = {}
    for piece, token_id in vocabulary.items():
        is_id = type(token_id) is int and 0 <= token_id < LARGEST_VOCABULARY
        if not is_id or owners.setdefault(token_id, piece) != piece:
            raise UserError(
                f"{where}: expected pieces with their ids, each from 0 to {LARGEST_VOCABULARY - 1:,} and "
                f"with no other piece; {piece!r} has {token_id!r}. {_MEND}"
            )


def check_scores(pieces: Sequence[tuple[str, float]], where: str) -> None:
    """Raise `UserError` if a piece of a Unigram is too long, or its score is not a finite number."""
    _check_lengths((piece for piece, _ in pieces), where)
    if odd := [f"{piece!r} has {score}" for piece, score in pieces if not math.isfinite(score)]:
        raise UserError(f"{where}: expected pieces with numbers as scores; {odd[0]}. {_MEND}")


def check_charsmap(table: bytes, where: str) -> None:
    """Raise `UserError` if a table of characters is too large, or its parts differ from the stated sizes."""
    size = int.from_bytes(table[:4], "little")
    try:
        table[4 + size :].decode("utf-8")
        is_whole = 0 < size <= len(table) - 4 and size % 4 == 0
    except UnicodeDecodeError:
        is_whole = False
    if not is_whole or len(table) > _LARGEST_CHARSMAP:
        raise UserError(f"{where}: its table of characters (precompiled_charsmap) is damaged. {_MEND}")


def _check_lengths(pieces: Iterable[str], where: str) -> None:
    if longest := next((piece for piece in pieces if len(piece) > _LONGEST_PIECE), None):
        raise UserError(
            f"{where}: has a piece of {len(longest):,} characters, {longest[:20]!r}…; up to "
            f"{_LONGEST_PIECE:,} are supported. {_MEND}"
        )


def _is_scored(entry: Any) -> bool:
    types = (str, (int, float))
    return isinstance(entry, list) and len(entry) == 2 and all(map(isinstance, entry, types))


def _steps(part: Any) -> Iterator[Mapping[str, Any]]:
    """The single steps of a normalizer or decoder, in order, including the steps inside sequences."""
    waiting = [part]
    while waiting:
        step = waiting.pop()
        if isinstance(step, list):
            waiting.extend(reversed(step))
        elif isinstance(step, Mapping):
            yield step
            waiting.append(step.get("normalizers") or step.get("decoders"))


def _growth(steps: Iterable[Mapping[str, Any]]) -> float:
    """The most characters that one character may become.

    A rule can replace the text of an earlier rule only if both share letters; case and accents do not count.
    """
    grown: dict[str, float] = {}
    most = 1.0
    for step in steps:
        content, pattern = step.get("content", step.get("prepend")), step.get("pattern")
        if not isinstance(content, str):
            continue
        replaced = pattern.get("String") if isinstance(pattern, Mapping) else None
        text = replaced if isinstance(replaced, str) else ""
        fed = max((grown.get(each, 1.0) for each in _letters(text)), default=most)
        factor = fed * max(1.0, len(content) / max(1, len(text)))
        for letter in _letters(content):
            grown[letter] = max(factor, grown.get(letter, 1.0))
        most = max(most, factor)
    return most


def _letters(text: str) -> set[str]:
    return set(unicodedata.normalize("NFKD", text).casefold())


Result = TypeVar("Result")
_PANIC = "PanicException"
"""The name by which a panic is recognized: no module exports the class, and it is not an `Exception`."""
_one_at_a_time = threading.Lock()


def may_panic(pipeline: Mapping[str, Any]) -> bool:
    """True if some text may make the tokenizer of a `tokenizer.json` panic.

    The cause may be a regular expression that does not end, or a damaged table of characters.
    """
    parts = json.dumps([pipeline["normalizer"], pipeline["pre_tokenizer"]])
    for own in OWN_PATTERNS:
        parts = parts.replace(json.dumps({"Regex": own}), "")
    return '"Regex"' in parts or '"Precompiled"' in parts


def survive(call: Callable[[], Result], where: str, quietly: bool) -> Result:
    """Return the result of `call`.

    `quietly` holds back standard error during the call, because a panic also prints there. Raises a
    `UserError` that names `where`, the tokenizer's file, if the library panics.
    """
    try:
        with _standard_error_held_back() if quietly else nullcontext():
            return call()
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        reason = str(error).strip().split("\n")[0]
        raise UserError(
            f"{where}: the tokenizers library failed with this tokenizer: {reason}. Correct its normalizer "
            "or pre-tokenizer (a regular expression may be the cause), or give another tokenizer"
        ) from None


def _nameless_file() -> IO[bytes]:
    """A temporary file; in memory if the system supports that (Linux), so that it works on a full disk."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("held"), "w+b")
    return tempfile.TemporaryFile()


@contextmanager
def _standard_error_held_back() -> Iterator[None]:
    """Hold back all that is written to standard error; write it afterward, or drop it after a panic."""
    with _one_at_a_time, _nameless_file() as held:
        try:
            original = os.dup(2)
        except OSError:  # standard error is closed: nobody would see anything
            yield
            return
        try:
            os.dup2(held.fileno(), 2)
            yield
        except BaseException as error:
            if type(error).__name__ == _PANIC:
                held.truncate(0)
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)
            held.seek(0)
            if written := held.read():
                os.write(2, written)
