"""How far another form of a model gives the same answers, or the same vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.data.rows import batch_of
from bertcli.examples.examples import Example
from bertcli.export.graph import ExportedModel
from bertcli.export.source import Source
from bertcli.inference.buffers import default_batch_size
from bertcli.inference.embed import Embedder
from bertcli.inference.examples import Runner
from bertcli.inference.onnx_model import HIDDEN, OnnxModel
from bertcli.tasks.registry import build_task

CPU = torch.device("cpu")
_SIZE = default_batch_size(CPU)
_HIDE_EVERY = 7
"""About as many tokens as in pretraining are masked, for a model that fills masks."""
_ANSWERS = ("label", "choice", "answer", "tags", "value")
"""The keys of predictions (`Prediction.as_json`) that hold the answer of a task."""


def agreement(source: Source, other: OnnxModel, examples: Sequence[Any]) -> dict[str, float]:
    """Of the same model in another form.

    Returns:
        `mean_cosine` and `min_cosine` of vectors; of values `mean_difference` and `largest_difference`; else
        `equal`, the share of equal answers (labels, tags of words, choices, words for masks and labels of
        pairs), and `answers`, their number.
    """
    if source.exported.outputs == (HIDDEN,):
        one_ND, other_ND = (_vectors(source, model, examples) for model in (source.model, other))
        cosines_N = F.cosine_similarity(one_ND, other_ND)
        return {"mean_cosine": float(cosines_N.mean()), "min_cosine": float(cosines_N.min())}
    if source.settings is not None:
        answers = [_answers(source, model, examples) for model in (source.model, other)]
    else:
        answers = [_words(source, model, examples) for model in (source.exported, other)]
    pairs = list(zip(*answers, strict=True))
    if source.settings is not None and source.settings.type == "regression":
        differences = [abs(one - another) for one, another in pairs]
        return {
            "mean_difference": sum(differences) / len(differences),
            "largest_difference": max(differences),
        }
    return {"equal": sum(one == another for one, another in pairs) / len(pairs), "answers": len(pairs)}


def _vectors(source: Source, model: Any, examples: Sequence[Any]) -> Tensor:
    embedder = Embedder(
        model, source.tokenizer, source.pooling, device=CPU, precision="fp32", batch_size=_SIZE
    )
    return torch.stack([embedded.vector_D for embedded in embedder.embed(examples)])


def _answers(source: Source, model: nn.Module, examples: Sequence[Any]) -> list[Any]:
    assert source.settings is not None
    task = build_task(source.settings, source.labels)
    runner = Runner(model, task, source.tokenizer.pad_id, device=CPU, precision="fp32", batch_size=_SIZE)
    found: list[Any] = []
    for prediction in runner.predict(examples, task.encode(examples, source.tokenizer)):
        values = prediction.as_json()
        answer = next(values[key] for key in _ANSWERS if key in values)
        found.extend(answer if "tags" in values else [answer])
    return found


@torch.inference_mode()
def _words(source: Source, model: ExportedModel | OnnxModel, examples: Sequence[Example]) -> list[Any]:
    """The answers of the heads of pretraining: likeliest words, replaced or not, the label of a pair."""
    kind, mask_id = source.exported.kind, source.tokenizer.mask_id
    fills, found = kind in ("masked-lm", "pretraining"), []
    for row in source.rows(examples):
        batch = batch_of([row], source.tokenizer.pad_id, CPU)
        hidden_T = torch.arange(row.length) % _HIDE_EVERY == 1
        ids_BT = batch.ids_BT.masked_fill(hidden_T, mask_id) if fills else batch.ids_BT
        if isinstance(model, OnnxModel):
            logits, *pair = model.run(ids_BT, batch.segments_BT)
        else:
            logits, *pair = model(ids_BT, torch.ones_like(ids_BT), batch.segments_BT)
        if fills:
            found += logits[0, hidden_T].argmax(-1).tolist() + [int(each[0].argmax()) for each in pair]
        else:
            found += (logits[0] > 0).tolist() if kind == "discriminator" else [int(logits[0].argmax())]
    return found
