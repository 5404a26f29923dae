"""DistilBERT (Sanh et al. 2019): BERT's layers under other names, without segments and pooler.

Attention's output has no dropout. The head of a task has ReLU.
"""

from bertcli.families.family import Family, Fresh, Head, attention_names, class_names, task_heads

_LAYER = "distilbert.transformer.layer.{}."

DISTILBERT = Family(
    model_type="distilbert",
    name="DistilBERT",
    sizes={
        "vocab_size": ("vocab_size", None),
        "hidden": ("dim", None),
        "layers": ("n_layers", None),
        "heads": ("n_heads", None),
        "feed_forward": ("hidden_dim", None),
        "max_positions": ("max_position_embeddings", None),
    },
    rates={
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.1),
        "classifier_dropout": ("seq_classif_dropout", 0.2),
        "question_dropout": ("qa_dropout", 0.1),
        "init_std": ("initializer_range", 0.02),
    },
    fixed={"activation": ("gelu",)},
    written={"activation": "gelu"},
    parts={"num_segments": 0, "attention_output_dropout": 0.0, "layer_norm_eps": 1e-12},
    tensors={
        "body.embeddings.word": "distilbert.embeddings.word_embeddings",
        "body.embeddings.position": "distilbert.embeddings.position_embeddings",
        "body.embeddings.norm": "distilbert.embeddings.LayerNorm",
        **attention_names(f"{_LAYER}attention.", "q_lin", "k_lin", "v_lin", "out_lin"),
        "body.encoder.layers.{}.attention_norm": f"{_LAYER}sa_layer_norm",
        "body.encoder.layers.{}.feed_forward.expand": f"{_LAYER}ffn.lin1",
        "body.encoder.layers.{}.feed_forward.contract": f"{_LAYER}ffn.lin2",
        "body.encoder.layers.{}.feed_forward_norm": f"{_LAYER}output_layer_norm",
        "mlm_head": "vocab_projector",
        "mlm_head.dense": "vocab_transform",
        "mlm_head.norm": "vocab_layer_norm",
    },
    prefix="distilbert.",
    tied_decoder="vocab_projector.weight",
    heads=task_heads(
        sequences=Head("classifier", dense="pre_classifier", activation="relu"),
        tokens=Head("classifier", dropout="dropout"),
        spans=Head("qa_outputs", dropout="question_dropout"),
    ),
    classes=class_names("DistilBert"),
)
NEW_DISTILBERT = Fresh(DISTILBERT, tokenizer="wordpiece", lowercase=True)
