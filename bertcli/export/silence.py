"""Warnings of exporters about themselves and about packages, of no use to the person at the terminal."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def silent(logger: logging.Logger) -> Iterator[None]:
    """Inside, `logger` says only errors, and Python's warnings are ignored."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
