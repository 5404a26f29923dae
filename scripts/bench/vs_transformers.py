#!/usr/bin/env python3
"""The pretraining step of bertcli beside that of transformers: in turn, in one process, on the same sizes.

    python scripts/bench/vs_transformers.py --preset mini --vocab-size 8192 --batch-size 64 --length 128 \
        --precision bf16 [--their-precision fp32] [--compile] [--pairs 7] [--device cuda]

Theirs is `PretrainingModel` as its users run it: SDPA attention, autocast in bf16 (or plain fp32, its
default), fused AdamW, gradients clipped at 1.0; with --compile through torch.compile, while ours stays as it
is unless --compile-ours. Dropout 0.1 on both sides, hidden and attention; rows are full, so that skipping
padding wins nothing. A pair is so many steps of ours, then of theirs; the ratio is taken pair by pair. Prints
a table and a JSON object. --profile shows instead how much of either step is matrix products, by torch's
profiler on a CPU: where a machine emulates bf16, the rest is what compares. Needs the test extras.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig
from transformers import BertForPreTraining as TheirBert

from bertcli.advice.bench.timing import (
    MASK_RATE,
    device_name,
    matmul_rate,
    now,
    synthetic_steps,
    take_steps,
    training_to_time,
)
from bertcli.config.model import PRESETS
from bertcli.config.run import DecidedLoop, ModelRecipe
from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import Architecture, training_flops
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.training.resolve import decide_loop, own_share

WARMUP_STEPS = 3
PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "mkldnn::_linear_pointwise"}
"""Operators that are matrix products."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="mini")
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--their-precision", choices=["bf16", "fp32"], help="default: the same")
    parser.add_argument("--compile", action="store_true", help="theirs")
    parser.add_argument("--compile-ours", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="a pair, of either side")
    options = parser.parse_args()
    training = training_to_time(
        batch_size=options.batch_size,
        precision=options.precision,
        device=options.device,
        compile=options.compile_ours,
    )
    sizes = new_architecture(
        ModelRecipe(preset=options.preset, dropout=options.dropout, max_positions=max(512, options.length)),
        options.vocab_size,
    )
    decided = decide_loop(training, sizes, options.length, tokens=0, predicted=MASK_RATE)
    device = torch.device(decided.device)
    our_step = ours(sizes, decided, options.length)
    their_step = theirs(options, device)
    for _ in range(WARMUP_STEPS):
        our_step()
        their_step()

    if options.profile:
        for name, step in (("bertcli", our_step), ("transformers", their_step)):
            products, rest = profiled(step, options.steps)
            print(f"{name:<14}{products:>12,.1f} ms of matrix products a step, {rest:>10,.1f} ms of all else")
        return

    pairs = []
    for number in range(options.pairs):
        pair = tuple(seconds_of(step, options.steps, device) for step in (our_step, their_step))
        pairs.append(pair)
        print(f"pair {number + 1}: {pair[1] / pair[0]:.2f} times as fast", file=sys.stderr, flush=True)
    our_median, their_median = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = sorted(theirs / ours for ours, theirs in pairs)
    tokens = options.batch_size * options.length
    flops = tokens * training_flops(sizes, options.length, round(MASK_RATE * options.length) / options.length)
    result = vars(options) | {
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "ms_per_step": 1e3 * our_median,
        "their_ms_per_step": 1e3 * their_median,
        "tokens_per_s": tokens / our_median,
        "their_tokens_per_s": tokens / their_median,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "matmul_share": flops / our_median / matmul_rate(device, options.precision),
    }
    print(f"{'':<14}{'ms a step':>12}{'tokens/s':>12}")
    for name, seconds in (("bertcli", our_median), ("transformers", their_median)):
        print(f"{name:<14}{1e3 * seconds:>12,.1f}{tokens / seconds:>12,.0f}")
    print(f"ratio: {result['ratio']:.2f} (median of {len(ratios)}, {ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(json.dumps(result))


def ours(sizes: Architecture, training: DecidedLoop, length: int) -> Callable[[], object]:
    """A step of the loop that `bertcli pretrain` runs."""
    torch.manual_seed(0)
    model = PretrainingModel(sizes).to(training.device)
    steps = synthetic_steps(sizes.vocab_size, training.largest_batch, length, own_share(training))
    reports: Iterator[object] = take_steps(
        model, MaskedLanguage(NEXT_SENTENCE, training.compile), steps, training
    )
    return lambda: next(reports)


def theirs(options: argparse.Namespace, device: torch.device) -> Callable[[], object]:
    """A step of theirs, on a batch of the same sizes with as many masked tokens."""
    torch.manual_seed(0)
    layers, hidden = PRESETS[options.preset]
    config = BertConfig(
        vocab_size=options.vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
        max_position_embeddings=max(512, options.length),
        attn_implementation="sdpa",  # pyright: ignore[reportCallIssue]
    )
    model = TheirBert(config).to(device).train()  # pyright: ignore[reportArgumentType]
    shape = (options.batch_size, options.length)
    ids_BT = torch.randint(5, options.vocab_size, shape, device=device)
    chosen_BM = torch.rand(shape, device=device).topk(round(MASK_RATE * options.length), dim=1).indices
    labels_BT = torch.full_like(ids_BT, -100).scatter(1, chosen_BM, ids_BT.gather(1, chosen_BM))
    batch = {
        "input_ids": ids_BT,
        "token_type_ids": (torch.arange(options.length, device=device) >= options.length // 2)
        .long()
        .expand(shape),
        "attention_mask": torch.ones_like(ids_BT),
        "labels": labels_BT,
        "next_sentence_label": torch.arange(options.batch_size, device=device) % 2,
    }
    half = (options.their_precision or options.precision) == "bf16"
    return plain_step(model, batch, half, forward=torch.compile(model) if options.compile else model)


def plain_step(
    model: Any, batch: dict[str, torch.Tensor], half: bool, forward: Any = None
) -> Callable[[], float]:
    """A step as users of transformers write it; `forward`: the compiled model, None: the model itself."""
    device = batch["input_ids"].device
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> float:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=half):
            loss = (model if forward is None else forward)(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())  # as every user's progress line reads it

    return step


def profiled(step: Callable[[], object], steps: int) -> tuple[float, float]:
    """Milliseconds a step: matrix products, and all else."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(steps):
            step()
    events = seen.key_averages()
    products = sum(event.self_cpu_time_total for event in events if event.key in PRODUCTS)
    total = sum(event.self_cpu_time_total for event in events)
    return products / steps / 1e3, (total - products) / steps / 1e3


def seconds_of(step: Callable[[], object], steps: int, device: torch.device) -> float:
    """Of one step."""
    started = now(device)
    for _ in range(steps):
        step()
    return (now(device) - started) / steps


if __name__ == "__main__":
    main()
