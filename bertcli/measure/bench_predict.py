"""Speed of prediction on texts of mixed length, compared with every row padded to `max_length`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from bertcli.examples.examples import Example
from bertcli.hardware import Precision
from bertcli.inference.buffers import default_batch_size
from bertcli.inference.examples import Runner
from bertcli.inference.predict import predict_stream
from bertcli.measure.clock import device_name, now
from bertcli.measure.padded import Padded
from bertcli.measure.ragged import Answering
from bertcli.memory.peak import peak_memory
from bertcli.tasks.registry import build_task


def bench_predict(
    answering: Answering,
    examples: Sequence[Example],
    device: torch.device,
    precision: Precision,
    batch_size: int | None = None,
) -> dict[str, Any]:
    """Time from text to prediction, once as in `bertcli predict` and once padded to `max_length`.

    Returns:
        what, device, precision, batch_size, max_length, texts, tokens_per_text; texts_per_s, tokens_per_s
        (real ones); padded_texts_per_s, speedup (over padded); peak_memory_mb.

    Raises:
        UserError: an example that the task cannot use.
    """
    tokenizer, settings = answering.tokenizer, answering.settings
    task, size = build_task(settings, answering.labels), batch_size or default_batch_size(device)
    model = answering.model.to(device).eval()
    items = task.encode(examples, tokenizer)
    tokens = sum(row.length for item in items for row in item.rows)

    def texts_per_second(model: nn.Module) -> float:
        runner = Runner(model, task, tokenizer.pad_id, device=device, precision=precision, batch_size=size)
        for _ in predict_stream(runner, tokenizer, examples[:size]):  # the first pass chooses kernels
            pass
        begun = now(device)
        for _ in predict_stream(runner, tokenizer, examples):
            pass
        return len(examples) / (now(device) - begun)

    speed, padded = texts_per_second(model), texts_per_second(Padded(model, settings.max_length))
    return {
        "what": "predict",
        "device": device_name(device),
        "precision": precision,
        "batch_size": size,
        "max_length": settings.max_length,
        "texts": len(examples),
        "tokens_per_text": tokens / len(examples),
        "texts_per_s": speed,
        "tokens_per_s": speed * tokens / len(examples),
        "padded_texts_per_s": padded,
        "speedup": speed / padded,
        "peak_memory_mb": peak_memory(device) / 1e6,
    }
