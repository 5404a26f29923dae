"""ModernBERT (Warner et al. 2024): rotary positions, windows, pre-norm layers with gates, no biases.

Older files name one layer in n that reads full rows; newer ones name the kind of every layer.
"""

import reprlib
from collections.abc import Mapping
from typing import Any

from bertcli.families.bert import SIZES
from bertcli.families.family import (
    Family,
    Fresh,
    Fused,
    Head,
    Keys,
    attention_names,
    class_names,
    integer_key,
    task_heads,
)

_LAYER = "model.layers.{}."
_FULL, _LOCAL = "full_attention", "sliding_attention"
_BASES = {_FULL: 160_000.0, _LOCAL: 10_000.0}
_HIGHEST_BASE = 1e9
"""The upper limit of a rotary base, as in `model.rotary_base`."""
_OLD_NAMES = {_FULL: "global", _LOCAL: "local"}
"""The kinds of layers in the keys of transformers 4."""
_DENSE_HEAD = Head("classifier", dense="head.dense", activation="gelu", norm="head.norm")


def _derive(config: Keys) -> Keys:
    return {
        "attention_output_dropout": config.get("attention_dropout", 0.0),
        "window": integer_key(config, "local_attention", 128, above=1) // 2,
        "local_layers": tuple(kind == _LOCAL for kind in _layer_types(config)),
        "rotary_bases": (_base(config, _FULL), _base(config, _LOCAL)),
    }


def _layer_types(config: Keys) -> list[str]:
    number, types = config.get("num_hidden_layers"), config.get("layer_types")
    if types is None:
        every = integer_key(config, "global_attn_every_n_layers", 3, above=0)
        return [_LOCAL if layer % every else _FULL for layer in range(number if type(number) is int else 0)]
    known = isinstance(types, list) and all(kind in (_FULL, _LOCAL) for kind in types)
    if not known or len(types) != number:
        raise ValueError(f"layer_types: expected {_FULL!r} or {_LOCAL!r} for each of the {number} layers")
    return types


def _base(config: Keys, kind: str) -> float:
    """The base of the rotary angles, from the newer key or the older one."""
    old, key, given = _OLD_NAMES[kind], "rope_parameters", config.get("rope_parameters") or {}
    rope = given.get(kind) or {} if isinstance(given, Mapping) else None
    if not isinstance(rope, Mapping) or rope.get("rope_type", "default") != "default":
        raise ValueError(f"{key}: {given!r} is not supported; expected a rope_theta of the type 'default'")
    if rope.keys() - {"rope_type", "rope_theta"}:
        raise ValueError(f"{key}: {', '.join(rope)}: only rope_type and rope_theta are supported")
    base = rope.get("rope_theta", config.get(f"{old}_rope_theta", _BASES[kind]))
    if type(base) not in (int, float) or not 1 < base <= _HIGHEST_BASE:
        shown = reprlib.repr(base)
        raise ValueError(f"{old}_rope_theta: {shown} is not a number above 1 and up to {_HIGHEST_BASE:,.0f}")
    return float(base)


def _keys(architecture: Any) -> Keys:
    bases: dict[str, float] = dict(zip((_FULL, _LOCAL), architecture.rotary_bases, strict=True))
    return {
        **{f"{old}_rope_theta": bases[kind] for kind, old in _OLD_NAMES.items()},
        "local_attention": 2 * architecture.window,
        "layer_types": [_LOCAL if local else _FULL for local in architecture.local_layers],
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()
        },
    }


MODERNBERT = Family(
    model_type="modernbert",
    name="ModernBERT",
    sizes={**SIZES, "max_positions": ("max_position_embeddings", 8192)},
    rates={
        "dropout": ("embedding_dropout", 0.0),
        "attention_dropout": ("attention_dropout", 0.0),
        "feed_forward_dropout": ("mlp_dropout", 0.0),
        "classifier_dropout": ("classifier_dropout", 0.0),
        "layer_norm_eps": ("norm_eps", 1e-5),
        "init_std": ("initializer_range", 0.02),
    },
    choices={"pooling": ("classifier_pooling", {"cls": "cls", "mean": "mean"})},
    parts={"num_segments": 0, "position_table": False, "biases": False, "pre_norm": True},
    derive=_derive,
    keys=_keys,
    fixed={
        "hidden_activation": ("gelu",),
        "classifier_activation": ("gelu",),
        **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), (False,)),
        "decoder_bias": (True,),
        "rope_scaling": (None,),
    },
    model_keys=("rotary_base",),
    written={"hidden_activation": "gelu", "classifier_activation": "gelu"},
    row_keys=(("bos_token_id", "cls_token_id"), ("eos_token_id", "sep_token_id")),
    tensors={
        "body.embeddings.word": "model.embeddings.tok_embeddings",
        "body.embeddings.norm": "model.embeddings.norm",
        "body.encoder.layers.{}.attention_norm": f"{_LAYER}attn_norm",
        **attention_names(f"{_LAYER}attn.", "Wqkv.query", "Wqkv.key", "Wqkv.value", "Wo"),
        "body.encoder.layers.{}.feed_forward_norm": f"{_LAYER}mlp_norm",
        "body.encoder.layers.{}.feed_forward.expand": f"{_LAYER}mlp.Wi",
        "body.encoder.layers.{}.feed_forward.contract": f"{_LAYER}mlp.Wo",
        "body.encoder.norm": "model.final_norm",
        "mlm_head": "decoder",
        "mlm_head.dense": "head.dense",
        "mlm_head.norm": "head.norm",
    },
    fused=Fused(r"(model\.)?layers\.\d+\.attn\.Wqkv", ("query", "key", "value"), by_head=False),
    prefix="model.",
    tied_decoder="decoder.weight",
    heads=task_heads(sequences=_DENSE_HEAD, tokens=_DENSE_HEAD, spans=_DENSE_HEAD),
    classes=class_names("ModernBert"),
)
NEW_MODERNBERT = Fresh(
    MODERNBERT,
    tokenizer="byte-bpe",
    lowercase=False,
    mask_rate=0.3,
    max_positions=8192,
    rate=2.0,
    feed_forward=1.5,
)
