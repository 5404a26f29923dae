"""A family of another shape, as data: its rows, no segments, positions from 2, tensors of other names.

Its rows, `<s> A </s>` and `<s> A </s></s> B </s>`, stand in the files of its tokenizer alone.
"""

from __future__ import annotations

from bertcli.families.family import Family, Head, task_heads
from bertcli.objectives.registry import MLM, MLM_NSP

DUMMY = Family(
    model_type="dummy",
    name="Dummy",
    sizes={
        "vocab_size": ("vocab_size", None),
        "hidden": ("d_model", None),
        "layers": ("n_layers", None),
        "heads": ("n_heads", None),
        "feed_forward": ("d_ff", None),
        "max_positions": ("n_positions", None),
    },
    rates={
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.1),
        "layer_norm_eps": ("layer_norm_eps", 1e-5),
        "init_std": ("init_std", 0.02),
    },
    parts={"num_segments": 0, "position_offset": 2},
    fixed={"activation": ("gelu",)},
    written={"activation": "gelu"},
    tensors={
        "body.embeddings.word": "dummy.words",
        "body.embeddings.position": "dummy.positions",
        "body.embeddings.norm": "dummy.norm",
        "body.encoder.layers.{}.attention.query": "dummy.layers.{}.q",
        "body.encoder.layers.{}.attention.key": "dummy.layers.{}.k",
        "body.encoder.layers.{}.attention.value": "dummy.layers.{}.v",
        "body.encoder.layers.{}.attention.output": "dummy.layers.{}.o",
        "body.encoder.layers.{}.attention_norm": "dummy.layers.{}.norm1",
        "body.encoder.layers.{}.feed_forward.expand": "dummy.layers.{}.up",
        "body.encoder.layers.{}.feed_forward.contract": "dummy.layers.{}.down",
        "body.encoder.layers.{}.feed_forward_norm": "dummy.layers.{}.norm2",
        "pooler.dense": "head.pool",
        "mlm_head": "lm_head",
        "mlm_head.dense": "lm_head.dense",
        "mlm_head.norm": "lm_head.norm",
        "pair_head.dense": "head.pair",
    },
    objectives=(MLM, MLM_NSP),
    prefix="dummy.",
    tied_decoder="lm_head.decoder.weight",
    buffers=r"dummy\.position_ids",
    heads=task_heads(
        sequences=Head("head.out", dense="head.pool"),
        tokens=Head("head.out"),
        spans=Head("qa", dropout=None),
    ),
    classes={
        "pretraining": "DummyForPretraining",
        "masked-lm": "DummyForMaskedLM",
        "pairs": "DummyForPairs",
        "encoder": "DummyModel",
        "sequences": "DummyForSequences",
        "tokens": "DummyForTokens",
        "spans": "DummyForSpans",
        "choices": "DummyForChoices",
    },
)
