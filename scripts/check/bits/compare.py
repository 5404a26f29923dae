"""Two results -> how they differ, in words; an empty text where they are equal."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

TIMES = ("seconds", "tokens_per_second")


def compare_metrics(old: Path, new: Path, tolerance: float = 0.0) -> str:
    """metrics.jsonl of two runs, row by row, without what a clock measured; numbers within `tolerance`."""
    rows = [[json.loads(line) for line in (run / "metrics.jsonl").open()] for run in (old, new)]
    if len(rows[0]) != len(rows[1]):
        return f"{len(rows[0])} rows and {len(rows[1])}"
    for number, (a, b) in enumerate(zip(*rows, strict=True), start=1):
        for key in sorted({*a, *b} - {*TIMES}):
            if not _is_near(a.get(key), b.get(key), tolerance):
                return f"row {number} (step {a['step']}), {key}: {a.get(key)} and {b.get(key)}"
    return ""


def _is_near(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_near(a[key], b[key], tolerance) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(lambda x, y: _is_near(x, y, tolerance), a, b))
    if isinstance(a, float) and isinstance(b, float) and tolerance:
        return abs(a - b) <= tolerance * max(abs(a), abs(b))
    return a == b


def compare_weights(old: Path, new: Path, tolerance: float = 0.0) -> str:
    """The tensors of two safetensors files by name: to the bit, or relative to the norm of each.

    With a tolerance the biases of keys are left out: softmax cancels them, so their gradient is nothing but
    rounding, which AdamW scales to full steps.
    """
    a, b = load_file(old), load_file(new)
    if a.keys() != b.keys():
        return f"only in one: {', '.join(sorted(a.keys() ^ b.keys())[:4])}"
    worst, worst_name = 0.0, ""
    for name in a:
        if a[name].dtype != b[name].dtype or a[name].shape != b[name].shape:
            return f"{name}: another shape or type"
        if not tolerance and a[name].tobytes() != b[name].tobytes():
            return f"{name}: differs by up to {np.abs(a[name] - b[name]).max():.3g}"
        distance = float(np.linalg.norm(a[name] - b[name]) / max(float(np.linalg.norm(a[name])), 1e-30))
        if tolerance and not name.endswith("key.bias") and distance > worst:
            worst, worst_name = distance, name
    return f"{worst_name}: {worst:.2g} of its norm" if worst > tolerance else ""


def compare_moments(old: Path, new: Path) -> str:
    """Two optimizer files as multisets of tensors, whatever the parameters are called.

    Rows of zeros are left out: those of words without a gradient, for which no moments were kept once.
    """
    kinds = [Counter(map(_without_zero_rows, load_file(path).values())) for path in (old, new)]
    only = [(kinds[i] - kinds[1 - i]).total() for i in (0, 1)]
    return f"{only[0]} tensors only in the old one, {only[1]} only in the new one" if any(only) else ""


def _without_zero_rows(tensor: np.ndarray) -> tuple[tuple[int, ...], str, bytes]:
    if tensor.ndim == 2:
        tensor = tensor[tensor.any(axis=1)]
    return tensor.shape, str(tensor.dtype), hashlib.sha256(tensor.tobytes()).digest()


def compare_files(old: Path, new: Path, pattern: str = "*") -> str:
    """Files of two folders (below them too) that match `pattern`, byte by byte."""
    a, b = dict(_hashes(old, pattern)), dict(_hashes(new, pattern))
    if not a:
        return f"{old}: no {pattern}"
    return ", ".join(sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name)))


def _hashes(folder: Path, pattern: str) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob(pattern)):
        if path.is_file():
            yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()


def compare_text(old: str, new: str) -> str:
    """Two outputs, line by line."""
    lines = old.splitlines(), new.splitlines()
    if old and lines[0] == lines[1]:
        return ""
    for number, (a, b) in enumerate(zip(*lines, strict=False), start=1):
        if a != b:
            return f"line {number}: {a[:80]!r} and {b[:80]!r}"
    return f"{len(lines[0])} lines and {len(lines[1])}"
