"""The results of `tests.parity.outputs`, by transformers."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import BertForPreTraining


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
