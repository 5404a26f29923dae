"""The variables of the TensorFlow checkpoint in `tests/hf/tf_checkpoint`, by formula: numpy only."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from tests.folders.folders import ODD

TF_CHECKPOINT = Path(__file__).parent / "tf_checkpoint"


def tf_value(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 values from -0.4 to 0.4 (1 around it for gammas) that depend on the name; exact anywhere."""
    numbers = np.arange(int(np.prod(shape)), dtype=np.uint64) * np.uint64(2654435761) + zlib.crc32(
        name.encode()
    )
    values = ((numbers >> np.uint64(8)) % 65536).astype(np.float32) / 65536 - 0.5
    return (values * np.float32(0.75) + name.endswith("gamma")).astype(np.float32).reshape(shape)


def tf_shapes() -> dict[str, tuple[int, ...]]:
    """Each variable that Google's run_pretraining.py saves of a model with the sizes `ODD` -> its shape."""
    hidden, wide, vocabulary = ODD.hidden, ODD.feed_forward, ODD.vocab_size
    shapes: dict[str, tuple[int, ...]] = {
        "bert/embeddings/word_embeddings": (vocabulary, hidden),
        "bert/embeddings/position_embeddings": (ODD.max_positions, hidden),
        "bert/embeddings/token_type_embeddings": (2, hidden),
        "cls/predictions/output_bias": (vocabulary,),
        "cls/seq_relationship/output_weights": (2, hidden),
        "cls/seq_relationship/output_bias": (2,),
    }
    dense = {"bert/pooler/dense": (hidden, hidden), "cls/predictions/transform/dense": (hidden, hidden)}
    norms = ["bert/embeddings/LayerNorm", "cls/predictions/transform/LayerNorm"]
    for i in range(ODD.layers):
        layer = f"bert/encoder/layer_{i}"
        for name in ("self/query", "self/key", "self/value", "output/dense"):
            dense[f"{layer}/attention/{name}"] = (hidden, hidden)
        dense |= {f"{layer}/intermediate/dense": (hidden, wide), f"{layer}/output/dense": (wide, hidden)}
        norms += [f"{layer}/attention/output/LayerNorm", f"{layer}/output/LayerNorm"]
    for name, shape in dense.items():
        shapes |= {f"{name}/kernel": shape, f"{name}/bias": shape[1:]}
    for name in norms:
        shapes |= {f"{name}/gamma": (hidden,), f"{name}/beta": (hidden,)}
    for name in norms[:2]:  # enough to show that an optimizer's variables are left aside
        shapes |= {f"{name}/gamma/adam_m": (hidden,), f"{name}/gamma/adam_v": (hidden,)}
    return shapes
