"""ELECTRA (Clark et al. 2020): BERT's layers, and embeddings with a width of their own.

A model is a generator, with the masked-language-model head, or a discriminator, with the replaced-token head.
Neither has a pooler: a task has a dense layer with GELU.
"""

from bertcli.families.bert import BERT
from bertcli.families.family import Family, Fresh, Generator, Head, bert_layers, class_names, task_heads
from bertcli.objectives.registry import MLM, RTD

_WIDTH = ("embedding_size", 128)

ELECTRA = Family(
    model_type="electra",
    name="ELECTRA",
    sizes={**BERT.sizes, "embedding": _WIDTH},
    rates={**BERT.rates, "choice_dropout": ("summary_last_dropout", 0.1)},
    derive=lambda config: {"embedding": None} if config.get(*_WIDTH) == config.get("hidden_size") else {},
    keys=lambda architecture: {"embedding_size": architecture.embedding or architecture.hidden},
    fixed={
        **BERT.fixed,
        "summary_type": ("first",),
        "summary_use_proj": (True,),
        "summary_activation": ("gelu",),
        "summary_first_dropout": (0, None),
    },
    written={**BERT.written, "summary_activation": "gelu"},
    tensors={
        **bert_layers("electra."),
        "body.embeddings.widen": "electra.embeddings_project",
        "mlm_head": "generator_lm_head",
        "mlm_head.dense": "generator_predictions.dense",
        "mlm_head.norm": "generator_predictions.LayerNorm",
        "rtd_head.dense": "discriminator_predictions.dense",
        "rtd_head.output": "discriminator_predictions.dense_prediction",
    },
    objectives=(MLM, RTD),
    prefix="electra.",
    tied_decoder="generator_lm_head.weight",
    heads=task_heads(
        sequences=Head(
            "classifier.out_proj", dense="classifier.dense", activation="gelu", dense_dropout="head_dropout"
        ),
        choices=Head(
            "classifier", dense="sequence_summary.summary", activation="gelu", dropout="choice_dropout"
        ),
    ),
    classes={**class_names("Electra"), "discriminator": "ElectraForPreTraining"},
)
NEW_ELECTRA = Fresh(
    ELECTRA,
    tokenizer="wordpiece",
    lowercase=True,
    mask_split=(0.85, 0.0, 0.15),
    generator=lambda hidden: Generator(width_share=1 / 3 if hidden == 768 else 1 / 4),
    keys=lambda hidden, max_positions: {"embedding_size": min(hidden, 128) if hidden < 768 else hidden},
)
