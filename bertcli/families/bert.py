"""BERT (Devlin et al. 2019): its model folders, as transformers and Google write them."""

from bertcli.families.family import (
    BERT_RATES,
    BERT_SIZES,
    ENCODER_ALONE,
    Family,
    Fresh,
    Head,
    bert_layers,
    class_names,
    task_heads,
)
from bertcli.objectives.registry import MLM, MLM_NSP

BERT = Family(
    model_type="bert",
    name="BERT",
    sizes=BERT_SIZES,
    rates=BERT_RATES,
    fixed={
        "hidden_act": ("gelu",),
        "position_embedding_type": ("absolute", None),
        **ENCODER_ALONE,
    },
    written={"hidden_act": "gelu", "tie_word_embeddings": True},
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
    heads=task_heads(
        sequences=Head("classifier", dense="bert.pooler.dense"),
        tokens=Head("classifier"),
        spans=Head("qa_outputs", dropout=None),
    ),
    classes=class_names("Bert", pretraining=True, pairs=True),
    tensorflow=(
        (r"/", "."),
        (r"\blayer_(\d+)\b", r"layer.\1"),
        (r"_embeddings$", r"\g<0>.weight"),
        (r"\.(kernel|gamma|output_weights)$", ".weight"),
        (r"\.(beta|output_bias)$", ".bias"),
    ),
)
NEW_BERT = Fresh(BERT, tokenizer="wordpiece", lowercase=True)
