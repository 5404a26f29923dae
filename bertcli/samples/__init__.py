"""The texts that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

SAMPLES = {"classics": Path(__file__).parent / "classics" / "classics.txt.gz"}
"""Name -> file. A blank line ends a document, a chapter of a book; its licence stands beside it."""
