"""ALBERT (Lan et al. 2020): BERT's layers with shared weights, narrow embeddings, order of sentences."""

from bertcli.families.bert import BERT, ENCODER_ALONE
from bertcli.families.family import (
    Family,
    Fresh,
    Head,
    Keys,
    attention_names,
    bert_layers,
    class_names,
    task_heads,
)
from bertcli.objectives.registry import MLM, MLM_SOP

_LAYER = "albert.encoder.albert_layer_groups.{}.albert_layers.0."


def _groups(config: Keys) -> Keys:
    groups, layers = config.get("num_hidden_groups", 1), config.get("num_hidden_layers")
    if type(groups) is int and type(layers) is int and groups > layers:
        raise ValueError(f"num_hidden_groups: {groups} groups, but only {layers} layers")
    return {}


ALBERT = Family(
    model_type="albert",
    name="ALBERT",
    sizes={**BERT.sizes, "embedding": ("embedding_size", 128), "layer_groups": ("num_hidden_groups", 1)},
    rates={
        **BERT.rates,
        "dropout": ("hidden_dropout_prob", 0.0),
        "attention_dropout": ("attention_probs_dropout_prob", 0.0),
        "classifier_dropout": ("classifier_dropout_prob", 0.1),
    },
    derive=_groups,
    choices={
        "activation": (
            "hidden_act",
            {"gelu_new": "gelu_tanh", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh"},
        ),
    },
    fixed={"position_embedding_type": ("absolute", None), "inner_group_num": (1,), **ENCODER_ALONE},
    written={"inner_group_num": 1},
    row_keys=(("bos_token_id",), ("eos_token_id",)),
    tensors={
        **bert_layers("albert."),
        "body.embeddings.widen": "albert.encoder.embedding_hidden_mapping_in",
        **attention_names(f"{_LAYER}attention.", "query", "key", "value", "dense"),
        "body.encoder.layers.{}.attention_norm": f"{_LAYER}attention.LayerNorm",
        "body.encoder.layers.{}.feed_forward.expand": f"{_LAYER}ffn",
        "body.encoder.layers.{}.feed_forward.contract": f"{_LAYER}ffn_output",
        "body.encoder.layers.{}.feed_forward_norm": f"{_LAYER}full_layer_layer_norm",
        "pooler.dense": "albert.pooler",
        "mlm_head": "predictions",
        "mlm_head.dense": "predictions.dense",
        "mlm_head.norm": "predictions.LayerNorm",
        "pair_head.dense": "sop_classifier.classifier",
    },
    objectives=(MLM, MLM_SOP),
    prefix="albert.",
    tied_decoder="predictions.decoder.weight",
    old_spellings=((r"^predictions\.decoder\.bias$", "predictions.bias"),),
    heads=task_heads(Head("classifier", dense="albert.pooler")),
    classes=class_names("Albert", "pretraining"),
)
NEW_ALBERT = Fresh(ALBERT, tokenizer="unigram", lowercase=True)
