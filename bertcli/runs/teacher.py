"""The teacher of a distillation, and the layers of it with which a student starts."""

from __future__ import annotations

import torch
from torch import Tensor

from bertcli.config.distillation import DistillationConfig
from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.hf.folder import load_model_folder
from bertcli.hf.locate import resolve_model
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.shallow import evenly_spaced
from bertcli.runs.objectives import PretrainingTask
from bertcli.tasks.distillation import Distillation
from bertcli.tasks.masked_language import MaskedLanguage
from bertcli.terminal import say
from bertcli.text.tokenizer import Tokenizer


def taught(task: PretrainingTask, config: PretrainConfig, tokenizer: Tokenizer) -> Distillation:
    """The task with the teacher of `config.distillation`, after `check_teacher`.

    Raises:
        UserError: the teacher cannot be read, or has another tokenizer.
    """
    assert config.distillation is not None
    assert isinstance(task, MaskedLanguage)
    teacher = _load_teacher(config.distillation, tokenizer)
    return Distillation(task, teacher, config.distillation.temperature, weights=config.distillation.weights)


def _load_teacher(config: DistillationConfig, tokenizer: Tokenizer) -> PretrainingModel:
    folder = resolve_model(config.teacher)
    loaded = load_model_folder(folder, pairs=False, dropout=0.0, mask_decoder=True)
    loaded.need("mlm_head")
    if loaded.tokenizer.hash != tokenizer.hash:
        raise UserError(
            f"distillation.teacher: {folder} has another tokenizer than the student, so that their words "
            "cannot be compared. Start the student without model.init_from, or from a model with the "
            "teacher's tokenizer"
        )
    return loaded.model


@torch.no_grad()
def start_like(student: PretrainingModel, teacher: PretrainingModel) -> None:
    """Give a fresh student the teacher's weights wherever both have a parameter of the same name and shape.

    Its layers are those of the teacher that `evenly_spaced` gives.
    """
    source = teacher.state_dict()
    given: dict[str, Tensor] = {}
    for name, own in student.state_dict().items():
        other = source.get(_name_in_teacher(name, student, teacher))
        if other is not None and other.shape[1:] == own.shape[1:] and len(other) > len(own):
            other = other[: len(own)] if _is_of_words(name) else other  # rows beyond the vocabulary
        if other is not None and other.shape == own.shape:
            given[name] = other
    student.load_state_dict(student.state_dict() | given)
    say(f"the student starts with {len(given)} of its {len(student.state_dict())} tensors from the teacher")


def _is_of_words(name: str) -> bool:
    return name in ("body.embeddings.word.weight", "mlm_head.bias")


def _name_in_teacher(name: str, student: PretrainingModel, teacher: PretrainingModel) -> str:
    prefix = "body.encoder.layers."
    if not name.startswith(prefix):
        return name
    number, _, rest = name.removeprefix(prefix).partition(".")
    own, others = len(student.body.encoder.layers), len(teacher.body.encoder.layers)
    return f"{prefix}{evenly_spaced(others, own)[int(number)]}.{rest}"
