#!/usr/bin/env python3
"""What attention keeps for the backward pass in DeBERTa-v3, in bertcli and in transformers.

    python scripts/bench/deberta_memory.py [--rows 16] [--length 512] [--hidden 384] [--heads 6]

The largest number of bytes of the tensors that one layer's attention saves, with dropout 0.1; each storage
counts once, parameters do not. Prints a table. Needs the test extras.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DebertaV2Config
from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Encoder

from bertcli.model.architecture import Architecture, Relative
from bertcli.model.encoder import Encoder

MEBIBYTE = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--heads", type=int, default=6)
    options = parser.parse_args()
    print("precision  bertcli MiB  transformers MiB  ratio")
    for half in (False, True):
        mine, others = (side(options, half) for side in (ours, theirs))
        name = "bf16" if half else "fp32"
        print(f"{name:9}  {mine / MEBIBYTE:11.1f}  {others / MEBIBYTE:16.1f}  {mine / others:5.2f}")


def ours(options: argparse.Namespace, half: bool) -> int:
    """Bytes that the attention of bertcli keeps."""
    relative = Relative(
        content_to_position=True,
        position_to_content=True,
        max_distance=512,
        buckets=256,
        shared_projections=True,
        normalized_table=True,
    )
    encoder = Encoder(
        Architecture(
            vocab_size=1,
            hidden=options.hidden,
            layers=1,
            heads=options.heads,
            feed_forward=1,
            max_positions=options.length,
            relative=relative,
        )
    )
    attention = encoder.layers[0].get_submodule("attention")
    shared = encoder.shared()
    return kept_bytes(encoder, lambda hidden_BTD: attention(hidden_BTD, None, *shared), options, half=half)


def theirs(options: argparse.Namespace, half: bool) -> int:
    """Bytes that the attention of transformers keeps."""
    config = DebertaV2Config(
        hidden_size=options.hidden,
        num_hidden_layers=1,
        num_attention_heads=options.heads,
        intermediate_size=1,
        max_position_embeddings=options.length,
        relative_attention=True,
        pos_att_type="p2c|c2p",
        **{"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    )
    encoder: Any = DebertaV2Encoder(config)
    inner = encoder.layer[0].attention
    ones_BT = torch.ones(options.rows, options.length, dtype=torch.long)
    mask, table_PD = encoder.get_attention_mask(ones_BT), encoder.get_rel_embedding()

    def attend(hidden_BTD: Tensor) -> Tensor:
        places = encoder.get_rel_pos(hidden_BTD)
        context_BTD, _ = inner.self(hidden_BTD, mask, relative_pos=places, rel_embeddings=table_PD)
        return inner.output.dense(context_BTD)

    return kept_bytes(encoder, attend, options, half=half)


def kept_bytes(
    module: nn.Module, attend: Callable[[Tensor], Tensor], options: argparse.Namespace, half: bool
) -> int:
    """Bytes of the tensors that `attend` saves, but for the parameters of `module`."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    storages: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    dtype = torch.bfloat16 if half else torch.float32
    hidden_BTD = torch.randn(options.rows, options.length, options.hidden, dtype=dtype, requires_grad=True)
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=half),
    ):
        module.train()
        kept = attend(hidden_BTD)  # until the end, so that no storage takes the place of another
    assert kept.requires_grad
    return sum(storages.values())


if __name__ == "__main__":
    main()
