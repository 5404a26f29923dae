"""transformers' side of the comparisons: tiny random models, their folders, and what they compute."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import BertConfig, BertForPreTraining

from bertcli.batches.share import MicroBatch
from tests.folders.folders import ODD, tiny_tokenizer


def odd_config(**changes: Any) -> BertConfig:
    """The sizes of `tests.folders.folders.ODD`."""
    return BertConfig(
        vocab_size=ODD.vocab_size,
        hidden_size=ODD.hidden,
        num_hidden_layers=ODD.layers,
        num_attention_heads=ODD.heads,
        intermediate_size=ODD.feed_forward,
        max_position_embeddings=ODD.max_positions,
        initializer_range=0.4,
        **changes,
    )


def saved_by_transformers(folder: Path, model_class: Any, config: BertConfig, **options: Any) -> Any:
    """A random model, none of whose parameters is 0 or 1, saved by transformers; our tokenizer beside it."""
    torch.manual_seed(5)
    model = model_class(config, **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    model.save_pretrained(folder)
    tiny_tokenizer().save(folder)
    return model


@torch.no_grad()
def their_outputs(
    model: BertForPreTraining, inputs: tuple[Tensor, Tensor, Tensor | None]
) -> dict[str, Tensor]:
    """`model` is in evaluation, with `attn_implementation="eager"`, which alone returns probabilities."""
    ids_BT, segments_BT, mask_BT = inputs
    output = model(
        input_ids=ids_BT,
        token_type_ids=segments_BT,
        attention_mask=None if mask_BT is None else mask_BT.long(),
        output_hidden_states=True,
        output_attentions=True,
    )
    assert model.bert.pooler is not None
    last_BTD = output.hidden_states[-1]
    return {
        **{f"hidden_{i}": value for i, value in enumerate(output.hidden_states)},
        **{f"attention_{i}": value for i, value in enumerate(output.attentions)},
        "last_hidden": last_BTD,
        "pooled": model.bert.pooler(last_BTD),
        "mlm_logits": output.prediction_logits,
        "nsp_logits": output.seq_relationship_logits,
    }


@torch.no_grad()
def plain_evaluation(
    model: BertForPreTraining, steps: Iterable[Sequence[MicroBatch]]
) -> tuple[dict[str, float], Counter[int]]:
    """Mean losses over the masked tokens and over the pairs; and how often the rows of words hold each id."""
    sums: defaultdict[str, float] = defaultdict(float)
    held: Counter[int] = Counter()
    for (_, batch, _), *_ in steps:
        mask_BT = torch.arange(batch.ids_BT.shape[1]) < batch.lengths_B[:, None]
        output = model(
            input_ids=batch.ids_BT, token_type_ids=batch.segments_BT, attention_mask=mask_BT.long()
        )
        if batch.labels_B is not None:
            sums["nsp"] += float(
                F.cross_entropy(output.seq_relationship_logits, batch.labels_B, reduction="sum")
            )
            sums["pairs"] += len(batch.labels_B)
            continue
        logits_MV = output.prediction_logits[batch.rows_M, batch.columns_M]
        sums["mlm"] += float(F.cross_entropy(logits_MV, batch.targets_M, reduction="sum"))
        sums["words"] += len(batch.targets_M)
        ids_BT = batch.ids_BT.clone()
        ids_BT[batch.rows_M, batch.columns_M] = batch.targets_M
        held.update(ids_BT[mask_BT].tolist())
    losses = {"mlm_loss": sums["mlm"] / sums["words"]}
    return losses | ({"nsp_loss": sums["nsp"] / sums["pairs"]} if sums["pairs"] else {}), held
