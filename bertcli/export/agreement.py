"""How far another form of a model gives the same answers, or the same vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.config.finetune import TaskSettings
from bertcli.data.rows import batch_of
from bertcli.examples.examples import Example
from bertcli.export.graph import ExportedModel
from bertcli.hf.sentence_transformers import SentencePooling
from bertcli.inference.buffers import default_batch_size
from bertcli.inference.embed import Embedder
from bertcli.inference.examples import Runner
from bertcli.inference.onnx_model import HIDDEN, OnnxModel
from bertcli.tasks.registry import build_task
from bertcli.text.frame import Row
from bertcli.text.tokenizer import Tokenizer

CPU = torch.device("cpu")
_SIZE = default_batch_size(CPU)
_HIDE_EVERY = 7
"""About as many tokens as in pretraining are masked, for a model that fills masks."""
_ANSWERS = ("label", "choice", "answer", "tags", "value")
"""The keys of predictions (`Prediction.as_json`) that hold the answer of a task."""


@dataclass(frozen=True)
class Subject:
    """A model with what is needed to give it texts.

    `settings` and `labels` are of its task (None: it has none), `pooling` is of its vectors.
    """

    exported: ExportedModel
    tokenizer: Tokenizer
    settings: TaskSettings | None
    labels: tuple[str, ...]
    pooling: SentencePooling

    @property
    def model(self) -> Any:
        """With the interface of `model.task_models`."""
        return self.exported.model

    def rows(self, examples: Sequence[Example]) -> list[Row]:
        """What the model reads of the examples."""
        if self.settings is not None:
            items = build_task(self.settings, self.labels).encode(examples, self.tokenizer)
            return [row for item in items for row in item.rows]
        encoded = self.tokenizer.encode_batch([example.texts[0] for example in examples])
        longest = self.pooling.max_length or self.exported.architecture.usable_positions
        return [self.tokenizer.frame.fit(ids, None, longest) for ids in encoded]


def agreement(subject: Subject, other: OnnxModel, examples: Sequence[Any]) -> dict[str, float]:
    """Of the same model in another form.

    Returns:
        `mean_cosine` and `min_cosine` of vectors; of values `mean_difference` and `largest_difference`; else
        `equal`, the share of equal answers (labels, tags of words, choices, words for masks), and `answers`,
        their number.
    """
    if subject.exported.outputs == (HIDDEN,):
        one_ND, other_ND = (_vectors(subject, model, examples) for model in (subject.model, other))
        cosines_N = F.cosine_similarity(one_ND, other_ND)
        return {"mean_cosine": float(cosines_N.mean()), "min_cosine": float(cosines_N.min())}
    if subject.settings is not None:
        answers = [_answers(subject, model, examples) for model in (subject.model, other)]
    else:
        answers = [_words(subject, model, examples) for model in (subject.exported, other)]
    pairs = list(zip(*answers, strict=True))
    if subject.settings is not None and subject.settings.type == "regression":
        differences = [abs(one - another) for one, another in pairs]
        return {
            "mean_difference": sum(differences) / len(differences),
            "largest_difference": max(differences),
        }
    return {"equal": sum(one == another for one, another in pairs) / len(pairs), "answers": len(pairs)}


def _vectors(subject: Subject, model: Any, examples: Sequence[Any]) -> Tensor:
    embedder = Embedder(
        model, subject.tokenizer, subject.pooling, device=CPU, precision="fp32", batch_size=_SIZE
    )
    return torch.stack([embedded.vector_D for embedded in embedder.embed(examples)])


def _answers(subject: Subject, model: nn.Module, examples: Sequence[Any]) -> list[Any]:
    assert subject.settings is not None
    task = build_task(subject.settings, subject.labels)
    runner = Runner(model, task, subject.tokenizer.pad_id, device=CPU, precision="fp32", batch_size=_SIZE)
    found: list[Any] = []
    for prediction in runner.predict(examples, task.encode(examples, subject.tokenizer)):
        values = prediction.as_json()
        answer = next(values[key] for key in _ANSWERS if key in values)
        found.extend(answer if "tags" in values else [answer])
    return found


@torch.inference_mode()
def _words(subject: Subject, model: ExportedModel | OnnxModel, examples: Sequence[Example]) -> list[Any]:
    """The answers of a head of pretraining: likeliest words, replaced or not, the label of a pair."""
    kind, mask_id = subject.exported.kind, subject.tokenizer.mask_id
    fills, found = kind in ("masked-lm", "pretraining"), []
    for row in subject.rows(examples):
        batch = batch_of([row], subject.tokenizer.pad_id, CPU)
        hidden_T = torch.arange(row.length) % _HIDE_EVERY == 1
        ids_BT = batch.ids_BT.masked_fill(hidden_T, mask_id) if fills else batch.ids_BT
        if isinstance(model, OnnxModel):
            logits = model.run(ids_BT, batch.segments_BT)[0]
        else:
            logits = model(ids_BT, torch.ones_like(ids_BT), batch.segments_BT)[0]
        if fills:
            found += logits[0, hidden_T].argmax(-1).tolist()
        else:
            found += (logits[0] > 0).tolist() if kind == "discriminator" else [int(logits[0].argmax())]
    return found
