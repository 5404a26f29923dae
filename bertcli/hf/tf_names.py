"""The one table of names in TensorFlow checkpoints of BERT -> the same tensor in a Hugging Face folder."""

from __future__ import annotations

import re

_MODULES = {
    "bert/embeddings/LayerNorm": "bert.embeddings.LayerNorm",
    "bert/pooler/dense": "bert.pooler.dense",
    "cls/predictions/transform/dense": "cls.predictions.transform.dense",
    "cls/predictions/transform/LayerNorm": "cls.predictions.transform.LayerNorm",
}
_LAYER = {
    "attention/self/query": "attention.self.query",
    "attention/self/key": "attention.self.key",
    "attention/self/value": "attention.self.value",
    "attention/output/dense": "attention.output.dense",
    "attention/output/LayerNorm": "attention.output.LayerNorm",
    "intermediate/dense": "intermediate.dense",
    "output/dense": "output.dense",
    "output/LayerNorm": "output.LayerNorm",
}
"""Below `bert/encoder/layer_N` there, `bert.encoder.layer.N` here."""
_PARAMETERS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
_TENSORS = {
    "bert/embeddings/word_embeddings": "bert.embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "bert.embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "bert.embeddings.token_type_embeddings.weight",
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
}
"""What has no module: tables of embeddings, and the heads' own variables."""

_OPTIMIZER = re.compile(r".+/adam_[mv]|(.+/)?(global_step|beta[12]_power)")


def name_from_tensorflow(name: str) -> str | None:
    """A variable of Google's `modeling.py` or `run_pretraining.py` -> its Hugging Face name, or None."""
    if name in _TENSORS:
        return _TENSORS[name]
    module, _, parameter = name.rpartition("/")
    if layer := re.fullmatch(r"bert/encoder/layer_(\d+)/(.+)", module):
        below = _LAYER.get(layer[2])
        theirs = below and f"bert.encoder.layer.{layer[1]}.{below}"
    else:
        theirs = _MODULES.get(module)
    return f"{theirs}.{_PARAMETERS[parameter]}" if theirs and parameter in _PARAMETERS else None


def is_transposed(name: str) -> bool:
    """Whether TensorFlow holds the matrix as [in, out]: its dense layers do, its own variables do not."""
    return name.endswith("/kernel")


def is_optimizer_state(name: str) -> bool:
    """Whether a variable belongs to the training run alone: Adam's moments, the step."""
    return _OPTIMIZER.fullmatch(name) is not None
