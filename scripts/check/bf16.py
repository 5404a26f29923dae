"""How far gradients in bf16 are from those in fp32, here and with transformers' model under autocast.

    python scripts/check/bf16.py MODEL TEXT

MODEL is a pretrained folder, TEXT a file of prose. Both sides predict the same masked words of the same 64
rows of 64 tokens, dropout 0, in fp32 and in bf16. Prints |difference| / |gradient| over all weights,
and how much longer or shorter the gradient is along its own direction. Needs the test extras.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertForPreTraining as TheirBert

from bertcli.folders.model_folder import load_model_folder

ROWS, LENGTH, MASK_RATE = 64, 64, 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    loaded = load_model_folder(options.model, pairs=True, adapt=lambda sizes: sizes.with_dropout(0.0))
    ids = loaded.tokenizer.encode(options.text.read_text(encoding="utf-8")[: 20 * ROWS * LENGTH])
    ids_BT = torch.tensor(list(ids[: ROWS * LENGTH])).view(ROWS, LENGTH)
    masked_M = (torch.rand(ROWS * LENGTH) < MASK_RATE).nonzero().squeeze(1)
    words_M = ids_BT.flatten()[masked_M]
    ids_BT.view(-1)[masked_M] = loaded.tokenizer.mask_id
    segments_BT = torch.zeros_like(ids_BT)
    theirs = TheirBert.from_pretrained(
        options.model, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )

    def our_logits() -> Tensor:
        return loaded.model(ids_BT, segments_BT, None, masked_M).mlm_logits_MV

    def their_logits() -> Tensor:
        logits = theirs(input_ids=ids_BT, token_type_ids=segments_BT).prediction_logits
        return logits.flatten(0, 1)[masked_M]

    sides: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {
        "bertcli": (loaded.model, our_logits),
        "transformers": (theirs, their_logits),
    }
    for name, (model, logits) in sides.items():
        fp32, bf16 = (gradient(model.train(), logits, words_M, half) for half in (False, True))
        error, along = (bf16 - fp32).norm() / fp32.norm(), bf16 @ fp32 / (fp32 @ fp32) - 1
        print(f"{name:<14}{100 * float(error):6.2f} % off,{100 * float(along):+7.2f} % along the gradient")


def gradient(model: nn.Module, logits: Callable[[], Tensor], words_M: Tensor, half: bool) -> Tensor:
    """Of the mean loss of the masked words, all weights in one vector."""
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        logits_MV = logits()
    F.cross_entropy(logits_MV.float(), words_M).backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])


if __name__ == "__main__":
    main()
