"""DeBERTa (He et al. 2021) and its versions 2 and 3 (He et al. 2023): relative positions in attention.

By default there is no position table. There is no pooler: a task has a dense layer with GELU.
"""

from dataclasses import replace
from typing import Any

from bertcli.families.bert import BERT, ENCODER_ALONE, SIZES
from bertcli.families.family import (
    Family,
    Fresh,
    Fused,
    Generator,
    Head,
    Keys,
    attention_names,
    bert_layers,
    class_names,
    integer_key,
    task_heads,
)
from bertcli.model.architecture import Convolution, Relative
from bertcli.objectives.registry import MLM, RTD

_ATTENTION = "body.encoder.layers.{}.attention."
_SELF = "deberta.encoder.layer.{}.attention.self."
_LATER = ("attention_head_size", "position_buckets", "share_att_key", "norm_rel_ebd", "conv_kernel_size")
"""Keys that version 1 does not have."""


def _derive(config: Keys) -> dict[str, Any]:
    hidden = integer_key(config, "hidden_size")
    positions = integer_key(config, "max_position_embeddings")
    _one_of(config, "relative_attention", [True], default=False)
    for key in ("embedding_size", "pooler_hidden_size"):
        _one_of(config, key, [hidden], default=hidden)
    head_size = hidden // max(1, integer_key(config, "num_attention_heads"))
    _one_of(config, "attention_head_size", [head_size], default=head_size)
    terms = config.get("pos_att_type")
    terms = [term.strip() for term in terms.lower().split("|")] if isinstance(terms, str) else terms
    if terms not in (["c2p"], ["p2c"], ["c2p", "p2c"], ["p2c", "c2p"]):
        raise ValueError(f"pos_att_type: {terms!r} is not supported; expected c2p, p2c or p2c|c2p")
    given = integer_key(config, "max_relative_positions", -1)
    farthest = given if given > 0 else positions
    buckets = integer_key(config, "position_buckets", -1)
    if buckets == 1 or buckets // 2 >= farthest - 1:
        raise ValueError(f"position_buckets: {buckets} is not below {2 * farthest - 2}, and not -1 for none")
    return {
        "num_segments": max(0, integer_key(config, "type_vocab_size", 0)),
        "position_table": _one_of(config, "position_biased_input", [True, False], default=True),
        "relative": Relative(
            content_to_position="c2p" in terms,
            position_to_content="p2c" in terms,
            max_distance=farthest,
            buckets=buckets if buckets > 0 else None,
            shared_projections=_one_of(config, "share_att_key", [False, True], default=False),
            normalized_table=_one_of(config, "norm_rel_ebd", ["layer_norm", "none"], default="none")
            == "layer_norm",
        ),
        "convolution": _convolution(config),
    }


def _convolution(config: Keys) -> Convolution | None:
    width = integer_key(config, "conv_kernel_size", 0)
    groups = integer_key(config, "conv_groups", 1)
    if width < 1:
        return None
    if not width % 2:
        raise ValueError(f"conv_kernel_size: {width} is even; a token would have no place in the middle")
    if groups < 1 or integer_key(config, "hidden_size") % groups:
        raise ValueError(f"conv_groups: {groups} does not divide hidden_size {config['hidden_size']}")
    return Convolution(width, groups, _one_of(config, "conv_act", ["gelu", "tanh"], default="tanh"))


def _keys(architecture: Any) -> dict[str, Any]:
    relative: Relative = architecture.relative
    convolution: Convolution | None = architecture.convolution
    terms = {"p2c": relative.position_to_content, "c2p": relative.content_to_position}
    as_positions = relative.max_distance == architecture.max_positions
    keys = {
        "type_vocab_size": architecture.num_segments,
        "position_biased_input": architecture.position_table,
        "pos_att_type": "|".join(term for term, there in terms.items() if there),
        "max_relative_positions": -1 if as_positions else relative.max_distance,
        "position_buckets": relative.buckets or -1,
        "share_att_key": relative.shared_projections,
        "norm_rel_ebd": "layer_norm" if relative.normalized_table else "none",
    }
    if convolution is not None:
        keys |= {"conv_kernel_size": convolution.width, "conv_groups": convolution.groups}
        keys |= {"conv_act": convolution.activation}
    return keys


def _derive_1(config: Keys) -> dict[str, Any]:
    values = _derive(_without_later(config))
    return values | {"relative": replace(values["relative"], key_bias=False)}


def _without_later(keys: Keys) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key not in _LATER}


def _one_of(config: Keys, key: str, known: list[Any], default: Any) -> Any:
    value = config.get(key, default)
    if value not in known:
        raise ValueError(f"{key}: {value!r} is not supported; expected {known[0]!r}")
    return value


DEBERTA_V2 = Family(
    model_type="deberta-v2",
    name="DeBERTa-v2",
    sizes=SIZES,
    rates={
        **BERT.rates,
        "classifier_dropout": ("cls_dropout", None),
        "pooler_dropout": ("pooler_dropout", 0.0),
        "layer_norm_eps": ("layer_norm_eps", 1e-7),
    },
    derive=_derive,
    keys=_keys,
    fixed={"hidden_act": ("gelu",), "pooler_hidden_act": ("gelu",), **ENCODER_ALONE},
    written={
        "hidden_act": "gelu",
        "pooler_hidden_act": "gelu",
        "relative_attention": True,
        "legacy": False,  # the head of the released files, which transformers' default does not read
    },
    tensors={
        **bert_layers("deberta."),
        **attention_names(_SELF, "query_proj", "key_proj", "value_proj"),
        f"{_ATTENTION}position_query": f"{_SELF}pos_query_proj",
        f"{_ATTENTION}position_key": f"{_SELF}pos_key_proj",
        "body.encoder.relative.table": "deberta.encoder.rel_embeddings",
        "body.encoder.relative.norm": "deberta.encoder.LayerNorm",
        "body.encoder.convolution.convolve": "deberta.encoder.conv.conv",
        "body.encoder.convolution.norm": "deberta.encoder.conv.LayerNorm",
        "mlm_head": "lm_predictions.lm_head",
        "mlm_head.dense": "lm_predictions.lm_head.dense",
        "mlm_head.norm": "lm_predictions.lm_head.LayerNorm",
        # The authors' folders have it; transformers ignores it.
        "mask_decoder.positions": "deberta.embeddings.position_embeddings",
        "rtd_head.dense": "mask_predictions.dense",
        "rtd_head.norm": "mask_predictions.LayerNorm",
        "rtd_head.output": "mask_predictions.classifier",
    },
    prefix="deberta.",
    tied_decoder="cls.predictions.decoder.weight",
    old_spellings=(
        (r"^cls\.predictions\.transform\.", "lm_predictions.lm_head."),
        (r"^cls\.predictions\.(decoder\.)?bias$", "lm_predictions.lm_head.bias"),
    ),
    objectives=(MLM, RTD),
    heads=task_heads(
        sequences=Head("classifier", dense="pooler.dense", activation="gelu", dense_dropout="pooler_dropout"),
        tokens=Head("classifier", dropout="dropout"),
    ),
    classes={**class_names("DebertaV2"), "discriminator": "DebertaV2Model"},
)
DEBERTA = replace(
    DEBERTA_V2,
    model_type="deberta",
    name="DeBERTa",
    objectives=(MLM,),
    derive=_derive_1,
    keys=lambda architecture: _without_later(_keys(architecture)),
    fixed={**DEBERTA_V2.fixed, "talking_head": (False, None)},
    tensors={
        **{ours: name for ours, name in DEBERTA_V2.tensors.items() if not ours.startswith("rtd_head")},
        **attention_names(f"{_SELF}in_proj.", "query", "key", "value"),
        f"{_ATTENTION}query.bias": f"{_SELF}q_bias",
        f"{_ATTENTION}value.bias": f"{_SELF}v_bias",
        f"{_ATTENTION}position_query": f"{_SELF}pos_q_proj",
        f"{_ATTENTION}position_key": f"{_SELF}pos_proj",
    },
    fused=Fused(r".+\.in_proj", ("query", "key", "value"), by_head=True),
    unused_heads=r"mask_predictions\..+",
    heads={kind: head for kind, head in DEBERTA_V2.heads.items() if kind != "choices"},
    classes={kind: name for kind, name in class_names("Deberta").items() if kind != "choices"},
)
_RELATIVE = {
    **{"relative_attention": True, "pos_att_type": "c2p|p2c", "position_biased_input": False},
    **{"type_vocab_size": 0, "max_relative_positions": -1, "pooler_dropout": 0.0},
}
NEW_DEBERTA = Fresh(
    DEBERTA, tokenizer="byte-bpe", lowercase=False, keys=lambda hidden, max_positions: _RELATIVE
)
NEW_DEBERTA_V3 = Fresh(
    DEBERTA_V2,
    tokenizer="unigram",
    lowercase=False,
    mask_split=(1.0, 0.0, 0.0),
    generator=lambda hidden: Generator(0.5, width_share=1.0, sharing="gradient-disentangled"),
    keys=lambda hidden, max_positions: {
        **_RELATIVE,
        **{"position_buckets": min(256, max_positions // 2), "share_att_key": True},
        "norm_rel_ebd": "layer_norm",
    },
)
