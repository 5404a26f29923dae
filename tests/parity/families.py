"""Tiny random models of every family, in transformers' classes, and their folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from bertcli.families.registry import FAMILIES
from tests.folders.folders import LABELS, WORDS, head_of, tiny_tokenizer

USUAL = {
    "vocab_size": len(WORDS),
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 150,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
}
"""Attention is far from uniform with weights this large."""
PROBLEMS = {"regression": "regression", "multi-label": "multi_label_classification"}


@dataclass(frozen=True)
class Case:
    """A shape of a family: its `model_type`, and the keys of `config.json` that differ from `USUAL`."""

    model_type: str
    keys: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.model_type, *(f"{key}={value}" for key, value in self.keys.items())])


V3 = {
    "legacy": False,
    "relative_attention": True,
    "position_buckets": 16,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "layer_norm_eps": 1e-7,
}
"""DeBERTa-v3 as published, but with buckets that the rows of the tests are longer than."""
V1 = {
    "legacy": False,
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "layer_norm_eps": 1e-7,
}


CASES = (
    Case("bert"),
    Case("roberta", {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    Case("roberta", {"type_vocab_size": 1, "pad_token_id": 3, "max_position_embeddings": 154}),
    Case("xlm-roberta", {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}),
    Case("camembert", {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}),
    Case("distilbert", {"hidden_dim": 40}),
    Case("electra", {"embedding_size": 10}),
    Case("electra", {"embedding_size": 24}),
    Case("albert", {"embedding_size": 10}),
    Case("albert", {"embedding_size": 24, "hidden_act": "gelu"}),
    Case("modernbert", {"local_attention": 16, "num_hidden_layers": 5}),
    Case("modernbert", {"local_attention": 128, "classifier_pooling": "mean"}),
    Case("modernbert", {"local_attention": 6, "layer_types": ["sliding_attention"] * 3}),
    Case("albert", {"embedding_size": 10, "num_hidden_groups": 2, "num_hidden_layers": 5}),
    Case("deberta-v2", V3),
    Case("deberta-v2", {**V3, "pos_att_type": "c2p", "share_att_key": False}),
    Case("deberta-v2", {**V3, "pos_att_type": "p2c", "share_att_key": False, "norm_rel_ebd": "none"}),
    Case("deberta-v2", {**V3, "share_att_key": False, "position_biased_input": True, "type_vocab_size": 2}),
    Case("deberta-v2", {**V3, "position_buckets": -1, "max_relative_positions": 40}),
    Case("deberta-v2", {**V3, "conv_kernel_size": 3, "conv_act": "gelu", "conv_groups": 1}),
    Case("deberta-v2", {**V3, "conv_kernel_size": 5, "conv_act": "tanh", "conv_groups": 2}),
    Case("deberta", V1),
    Case("deberta", {**V1, "pos_att_type": "c2p", "max_relative_positions": 40}),
    Case("deberta", {**V1, "pos_att_type": "p2c", "position_biased_input": True, "type_vocab_size": 2}),
)
FIRST = tuple({case.model_type: case for case in reversed(CASES)}.values())
"""One of each family."""


def their_config(case: Case, **more: Any) -> Any:
    return transformers.AutoConfig.for_model(case.model_type, **{**USUAL, **case.keys, **more})


def class_of(case: Case, kind: str) -> Any:
    """The class of transformers for a kind of `Family.classes`."""
    return getattr(transformers, FAMILIES[case.model_type].classes[kind])


def saved(folder: Path, case: Case, kind: str, **more: Any) -> Any:
    """A random model, none of whose parameters is 0 or 1, saved by transformers; our tokenizer beside it."""
    torch.manual_seed(5)
    model = class_of(case, kind)(their_config(case, **more)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
            if parameter.ndim == 2 and "embedding" not in name:
                parameter.normal_(0.0, 1.2 * parameter.shape[1] ** -0.5)
    model.save_pretrained(folder)
    tiny_tokenizer().save(folder)
    return model


def saved_task(folder: Path, case: Case, kind: str, **more: Any) -> Any:
    """As `saved`, for a task of `SETTINGS` with its labels."""
    labels = LABELS.get(kind, ("LABEL_0",) if kind == "regression" else ())
    names = {"id2label": dict(enumerate(labels))} if labels else {}
    problem = {"problem_type": PROBLEMS.get(kind)}
    return saved(folder, case, head_of(kind), **names, **problem, **more)


def rows(lengths: tuple[int, ...], case: Case) -> tuple[Tensor, Tensor, Tensor | None]:
    """ids, segments and mask of rows of random tokens; a mask only if there is padding."""
    pad_id = their_config(case).pad_token_id
    generator = torch.Generator().manual_seed(11)
    longest, lengths_B1 = max(lengths), torch.tensor(lengths)[:, None]
    ids_BT = torch.randint(5, len(WORDS), (len(lengths), longest), generator=generator)
    ids_BT = ids_BT.masked_fill(ids_BT == pad_id, len(WORDS) - 1)
    positions_T = torch.arange(longest)
    mask_BT = positions_T < lengths_B1
    segments_BT = ((positions_T >= lengths_B1 // 2) & mask_BT).long()
    if bool(mask_BT.all()):
        return ids_BT, segments_BT, None
    return ids_BT.masked_fill(~mask_BT, pad_id), segments_BT, mask_BT


def for_transformers(case: Case, inputs: tuple[Tensor, Tensor, Tensor | None]) -> dict[str, Tensor]:
    """The same rows as keyword arguments; only families with segments get them."""
    ids_BT, segments_BT, mask_BT = inputs
    named = {"input_ids": ids_BT}
    named["attention_mask"] = torch.ones_like(ids_BT) if mask_BT is None else mask_BT.long()
    if their_config(case).to_dict().get("type_vocab_size", 0) > 1:
        named["token_type_ids"] = segments_BT
    return named


def no_dropout(case: Case) -> dict[str, float]:
    """Every rate of the family, as 0."""
    family = FAMILIES[case.model_type]
    return {key: 0.0 for ours, (key, _) in family.rates.items() if ours.endswith("dropout")}
