"""The sizes of a model -> its parameters, by part, without building it."""

from __future__ import annotations

from bertcli.config.finetune import TaskType
from bertcli.model.architecture import Architecture


def pretraining_parameters(architecture: Architecture, nsp: bool) -> dict[str, int]:
    """Of `model.pretraining.BertForPreTraining`; the decoder, the word embeddings again, is counted once."""
    hidden = architecture.hidden
    parts = _body(architecture) | {
        "mlm_head": _linear(hidden, hidden) + 2 * hidden + architecture.vocab_size,
    }
    if nsp:
        parts |= {"pooler": _linear(hidden, hidden), "nsp_head": _linear(hidden, 2)}
    return parts


def task_parameters(architecture: Architecture, task: TaskType, num_labels: int) -> dict[str, int]:
    """Of the model that `model.task_models.build_task_model` builds."""
    hidden, parts = architecture.hidden, _body(architecture)
    if task == "question-answering":
        return parts | {"head": _linear(hidden, 2)}
    if task == "token-classification":
        return parts | {"head": _linear(hidden, num_labels)}
    outputs = num_labels if task == "classification" else 1
    return parts | {"pooler": _linear(hidden, hidden), "head": _linear(hidden, outputs)}


def _body(architecture: Architecture) -> dict[str, int]:
    hidden, wide = architecture.hidden, architecture.feed_forward
    rows = architecture.vocab_size + architecture.max_positions + architecture.num_segments
    layer = 4 * _linear(hidden, hidden) + _linear(hidden, wide) + _linear(wide, hidden) + 2 * 2 * hidden
    return {"embeddings": (rows + 2) * hidden, "encoder": architecture.layers * layer}


def _linear(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs
