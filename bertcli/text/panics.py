"""What the Rust code under `tokenizers` does not survive -> one error, without its own report."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from bertcli.errors import UserError

Result = TypeVar("Result")
_PANIC = "PanicException"
"""By name: the class is in no module, and not an `Exception`."""
_one_at_a_time = threading.Lock()


def may_panic(pipeline: Mapping[str, Any]) -> bool:
    """Whether some text may be too much for the tokenizer of a `tokenizer.json`.

    A regular expression may not end on it, a table of characters may be damaged.
    """
    parts = json.dumps([pipeline["normalizer"], pipeline["pre_tokenizer"]])
    return '"Regex"' in parts or '"Precompiled"' in parts


def survive(call: Callable[[], Result], where: str, quietly: bool) -> Result:
    """What `call` returns.

    `quietly` holds standard error back while it runs: a panic writes there on its own.
    Raises `UserError` naming `where`, the tokenizer's file, where the library panics: a regular expression
    that never ends, a table that is damaged.
    """
    try:
        if not quietly:
            return call()
        with _standard_error_held_back():
            return call()
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        reason = str(error).strip().split("\n")[0]
        raise UserError(
            f"{where}: the tokenizers library broke down over this tokenizer: {reason}. Mend its normalizer "
            "or pre-tokenizer (a regular expression may be to blame), or give another tokenizer"
        ) from None


def _nameless_file() -> IO[bytes]:
    """In memory where the system can (Linux), so that a full disk is no hindrance."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("held"), "w+b")
    return tempfile.TemporaryFile()


@contextmanager
def _standard_error_held_back() -> Iterator[None]:
    """What is written meanwhile, by whomever, is written afterward; after a panic it is dropped."""
    with _one_at_a_time, _nameless_file() as held:
        try:
            original = os.dup(2)
        except OSError:  # closed: nothing would be seen anyway
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
