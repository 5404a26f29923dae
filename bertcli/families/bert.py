"""BERT (Devlin et al. 2019): its model folders, as transformers and Google write them."""

from bertcli.families.family import Family, Fresh, Head, bert_layers, class_names, task_heads
from bertcli.objectives.registry import MLM, MLM_NSP

ENCODER_ALONE = {
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
}
"""Keys with the values of an encoder model; None: the key is treated as absent."""
SIZES: dict[str, tuple[str, int | None]] = {
    "vocab_size": ("vocab_size", None),
    "hidden": ("hidden_size", None),
    "layers": ("num_hidden_layers", None),
    "heads": ("num_attention_heads", None),
    "feed_forward": ("intermediate_size", None),
    "max_positions": ("max_position_embeddings", None),
}
"""The keys of sizes that most families kept."""

BERT = Family(
    model_type="bert",
    name="BERT",
    sizes={**SIZES, "num_segments": ("type_vocab_size", 2)},  # the defaults are those of Google's release
    rates={
        "dropout": ("hidden_dropout_prob", 0.1),
        "attention_dropout": ("attention_probs_dropout_prob", 0.1),
        "classifier_dropout": ("classifier_dropout", None),
        "layer_norm_eps": ("layer_norm_eps", 1e-12),
        "init_std": ("initializer_range", 0.02),
    },
    fixed={
        "hidden_act": ("gelu",),
        "position_embedding_type": ("absolute", None),
        **ENCODER_ALONE,
    },
    written={"hidden_act": "gelu"},
    tensors={
        **bert_layers("bert."),
        "pooler.dense": "bert.pooler.dense",
        "mlm_head": "cls.predictions",
        "mlm_head.dense": "cls.predictions.transform.dense",
        "mlm_head.norm": "cls.predictions.transform.LayerNorm",
        "pair_head.dense": "cls.seq_relationship",
    },
    objectives=(MLM, MLM_NSP),
    prefix="bert.",
    tied_decoder="cls.predictions.decoder.weight",
    old_spellings=(
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
        (r"^cls\.predictions\.decoder\.bias$", "cls.predictions.bias"),
    ),
    heads=task_heads(Head("classifier", dense="bert.pooler.dense")),
    classes=class_names("Bert", "pretraining", "pairs"),
    tensorflow=(
        (r"/", "."),
        (r"\blayer_(\d+)\b", r"layer.\1"),
        (r"_embeddings$", r"\g<0>.weight"),
        (r"\.(kernel|gamma|output_weights)$", ".weight"),
        (r"\.(beta|output_bias)$", ".bias"),
    ),
)
NEW_BERT = Fresh(BERT, tokenizer="wordpiece", lowercase=True)
