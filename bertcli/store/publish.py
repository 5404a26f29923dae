"""A store that was built aside gets its name; what the disk refuses is said in words."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertcli.errors import UserError


def publish(partial: Path, folder: Path) -> None:
    """Rename a whole store to `folder`; one that stood there goes."""
    old = folder.with_name(f"{folder.name}.old")
    if old.exists():
        shutil.rmtree(old)
    if folder.exists():
        os.rename(folder, old)
    os.rename(partial, folder)
    if old.exists():
        shutil.rmtree(old)


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn a full disk, or a place that cannot be written, into a `UserError` that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason = os.strerror(error.errno).lower()
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UserError(
                f"{folder}: {reason} while building the token store; what was there is whole. Free some "
                "space and run the command again: it goes on from here. Or name a folder elsewhere in "
                "corpus.store"
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise UserError(
                f"{folder}: the token store cannot be written: {reason}; name a folder that can in "
                "output_dir or corpus.store"
            ) from None
        raise
