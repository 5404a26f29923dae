"""The pipeline of a tokenizer -> a hash, the same for the same ids of every text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def fingerprint(pipeline: Mapping[str, Any]) -> str:
    """SHA-256 of a `tokenizer.json`, hexadecimal."""
    model = pipeline["model"]
    if model["type"] == "Unigram":  # the library reads a score's last bits otherwise than it writes them
        scores = [[piece, float(np.float32(score))] for piece, score in model["vocab"]]
        pipeline = {**pipeline, "model": {**model, "vocab": scores}}
    canonical = json.dumps(pipeline, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
