"""What it brings that the last layer goes on with the wanted tokens alone (`model.encoder`).

    python scripts/bench/last_layer.py [--preset mini] [--vocab-size 8192] [--batch-size 32]

Pretraining steps on full rows of 128 tokens as the loop takes them, and with a last layer that is whole, in
turn in one process. Prints the mean of their processor time, and the median ratio of a pair.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from bench_occurring_words import compare
from torch import Tensor

from bertcli.config.presets import PRESETS
from bertcli.config.schema import ModelConfig, TrainingConfig
from bertcli.data.share import Share
from bertcli.measure.step import take_steps
from bertcli.measure.synthetic import synthetic_steps
from bertcli.model.bert import Bert
from bertcli.model.build import architecture
from bertcli.model.init import initialize
from bertcli.model.pretraining import BertForPreTraining
from bertcli.tasks.pretraining import PretrainingTask


class WholeLastLayer(Bert):
    """Every token goes through all of every layer."""

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None = None,
        wanted_K: Tensor | None = None,
    ) -> Tensor:
        hidden_BTD = super().forward(ids_BT, segments_BT, mask_BT)
        return hidden_BTD if wanted_K is None else hidden_BTD.flatten(0, 1).index_select(0, wanted_K)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="mini")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="fp32")
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    sides = {"wanted tokens alone": Bert, "whole": WholeLastLayer}
    compare({name: steps_of(bert, options) for name, bert in sides.items()}, options.pairs)


def steps_of(bert: type[Bert], options: argparse.Namespace) -> Any:
    torch.manual_seed(0)
    sizes = architecture(ModelConfig(preset=options.preset, dropout=0.1), options.vocab_size)
    model = BertForPreTraining(sizes)
    model.bert = bert(sizes)
    initialize(model, sizes.init_std)
    rows = synthetic_steps(options.vocab_size, options.batch_size, 128, Share(options.batch_size))
    training = TrainingConfig(device="cpu", learning_rate=1e-4, precision=options.precision, compile=False)
    return take_steps(model, PretrainingTask(), rows, training)


if __name__ == "__main__":
    main()
