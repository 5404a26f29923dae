"""The identity of a model folder that a run reads again on a resume."""

from __future__ import annotations

from pathlib import Path

from bertcli.files import file_hash


def model_identity(folder: Path) -> dict[str, str]:
    """The hashes of its weights and vocabulary, by path: a resume encodes with the vocabulary, and may start
    from the weights, or learn from them."""
    return {
        str(path): file_hash(path, "blake2b")
        for path in sorted(folder.glob("*"))
        if path.suffix in (".safetensors", ".bin") or path.name in ("vocab.txt", "tokenizer.json")
    }
