"""The one table of names: a parameter here <-> the same parameter in a Hugging Face BERT folder."""

from __future__ import annotations

import re

EMBEDDINGS = {
    "body.embeddings.word": "bert.embeddings.word_embeddings",
    "body.embeddings.position": "bert.embeddings.position_embeddings",
    "body.embeddings.segment": "bert.embeddings.token_type_embeddings",
    "body.embeddings.norm": "bert.embeddings.LayerNorm",
}
LAYER = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
"""Below `body.encoder.layers.N` here, `bert.encoder.layer.N` there."""
HEADS = {
    "pooler.dense": "bert.pooler.dense",
    "mlm_head": "cls.predictions",
    "mlm_head.dense": "cls.predictions.transform.dense",
    "mlm_head.norm": "cls.predictions.transform.LayerNorm",
    "pair_head.dense": "cls.seq_relationship",
    "classifier": "classifier",
    "qa_outputs": "qa_outputs",
}

TIED_DECODER = "cls.predictions.decoder.weight"
"""The word embeddings once more, which many folders hold."""

_HARMLESS = re.compile(
    r"bert\.embeddings\.(position_ids|token_type_ids)"  # buffers of old releases: 0, 1, 2 ... and zeros
    # heads other than those of the model
    r"|(classifier|qa_outputs|cls\.seq_relationship|bert\.pooler)\..+"
    r"|cls\.predictions\.(bias|transform\.(dense|LayerNorm)\.(weight|bias))"
)


def hf_name(name: str) -> str:
    """Our parameter's name -> its name in a Hugging Face folder. Raises `KeyError` if it has none."""
    module, _, parameter = name.rpartition(".")
    if layer := re.fullmatch(r"body\.encoder\.layers\.(\d+)\.(.+)", module):
        return f"bert.encoder.layer.{layer[1]}.{LAYER[layer[2]]}.{parameter}"
    return f"{(EMBEDDINGS | HEADS)[module]}.{parameter}"


def modern_name(name: str) -> str:
    """Any spelling that folders use -> the one of `hf_name`.

    Old LayerNorms are gamma and beta, a bare encoder's names lack `bert.`, and the MLM bias has two places.
    """
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
    if name.startswith(("embeddings.", "encoder.", "pooler.")):
        name = f"bert.{name}"
    return "cls.predictions.bias" if name == "cls.predictions.decoder.bias" else name


def is_harmless(name: str) -> bool:
    """Whether a weight for which the model has no place may be left aside: another head, a buffer."""
    return _HARMLESS.fullmatch(name) is not None
