"""Config files that tests write."""

from __future__ import annotations

from pathlib import Path

MINIMAL = "output_dir: run\ncorpus: {files: [classics]}\n"
"""The text of a pretraining config with the keys that have no default."""


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path
