"""A panic of the Rust code of `tokenizers` -> one error, without the report that Rust prints."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import IO, Any, TypeVar

from bertcli.errors import UserError
from bertcli.text.new_normalizer import OWN_PATTERNS

Result = TypeVar("Result")
_PANIC = "PanicException"
"""Recognized by name: no module holds the class, and it is not an `Exception`."""
_one_at_a_time = threading.Lock()


def may_panic(pipeline: Mapping[str, Any]) -> bool:
    """Whether some text may make the tokenizer of a `tokenizer.json` panic.

    A regular expression may not end, or a table of characters may be damaged.
    """
    parts = json.dumps([pipeline["normalizer"], pipeline["pre_tokenizer"]])
    for own in OWN_PATTERNS:
        parts = parts.replace(json.dumps({"Regex": own}), "")
    return '"Regex"' in parts or '"Precompiled"' in parts


def survive(call: Callable[[], Result], where: str, quietly: bool) -> Result:
    """What `call` returns.

    `quietly`: hold back standard error meanwhile, because a panic also prints there.
    Raises `UserError` that names `where`, the tokenizer's file, where the library panics.
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
    """In memory where the system supports it (Linux), so that it also works with a full disk."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("held"), "w+b")
    return tempfile.TemporaryFile()


@contextmanager
def _standard_error_held_back() -> Iterator[None]:
    """What any code writes meanwhile is written afterward; after a panic it is dropped."""
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
