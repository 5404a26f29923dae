"""Distillation: a student learns a teacher's words and hidden states (Sanh et al. 2019, section 3)."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.batch import Batch
from bertcli.config.schema import PretrainConfig
from bertcli.folders.locate import resolve_model
from bertcli.folders.model_folder import load_model_folder
from bertcli.model.pretraining import PretrainingModel, PretrainingOutput
from bertcli.model.task_models import evenly_spaced
from bertcli.objectives.base import Task, Term
from bertcli.objectives.masked_language import IGNORED, MaskedLanguage, round_masked, soft_divergence
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.tokenizer.tokenizer import Tokenizer


class Distillation:
    """The terms of `MaskedLanguage`, the teacher's words at the masked tokens (`kl`), and the direction of
    the hidden states at all real tokens (`cosine`).

    The original uses the teacher's words at all tokens by default, and at the masked tokens as an option,
    which reduces the cost of the vocabulary to a sixth.
    """

    def __init__(
        self,
        words: MaskedLanguage,
        teacher: PretrainingModel,
        temperature: float,
        weights: tuple[float, float, float],
    ) -> None:
        """Freeze the teacher. `weights` are those of kl, mlm and cosine. A weight of 0 turns off kl or
        cosine; mlm is always measured."""
        self._words, self._temperature = words, temperature
        self.teacher = teacher.eval().requires_grad_(False)
        self._weights: dict[str, float] = dict(zip(("kl", "mlm", "cosine"), weights, strict=True))
        self._left_out = {name for name in ("kl", "cosine") if self._weights[name] == 0}

    def counts(self, batch: Batch) -> dict[str, int]:
        counts = {"kl": batch.num_masked, **self._words.counts(batch), "cosine": batch.num_tokens}
        return {name: count for name, count in counts.items() if name not in self._left_out}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        batch, hidden = round_masked(batch), "cosine" not in self._left_out
        inputs = batch.ids_BT, batch.segments_BT, batch.mask_BT, batch.masked_M
        with torch.no_grad():
            taught: PretrainingOutput = self.teacher.to(batch.ids_BT.device)(*inputs, hidden=hidden)
        output: PretrainingOutput = model(*inputs, hidden=hidden)
        terms = self._words.terms_of(output, batch)
        if "kl" not in self._left_out:
            counted_M = batch.targets_M != IGNORED
            logits = output.mlm_logits_MV[counted_M], taught.mlm_logits_MV[counted_M]
            shared = min(each.shape[1] for each in logits)  # tables may have more rows than the vocabulary
            own, theirs = (each[:, :shared] for each in logits)
            divergence = soft_divergence(own.float(), theirs.float(), self._temperature)
            terms["kl"] = Term(divergence)
        if output.hidden_BTD is not None and taught.hidden_BTD is not None:
            terms["cosine"] = Term(_angles(output.hidden_BTD, taught.hidden_BTD, batch.mask_BT))
        return {name: replace(term, weight=self._weights.get(name, 1.0)) for name, term in terms.items()}


def _angles(hidden_BTD: Tensor, teacher_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
    """The sum of 1 - cos(student, teacher) over real tokens."""
    distance_BT = 1.0 - F.cosine_similarity(hidden_BTD.float(), teacher_BTD.float(), dim=-1)
    return (distance_BT if mask_BT is None else distance_BT[mask_BT.to(distance_BT.device)]).sum()


def taught(task: Task, config: PretrainConfig, tokenizer: Tokenizer) -> Distillation:
    """The task with the teacher of `config.distillation`, which must not be None, after `check_teacher`.

    Raises:
        UserError: the teacher cannot be read, lacks an MLM head, or has another tokenizer.
    """
    settings = config.distillation
    assert settings is not None
    assert isinstance(task, MaskedLanguage)
    folder = resolve_model(settings.teacher)
    loaded = load_model_folder(
        folder, pairs=False, adapt=lambda sizes: sizes.with_dropout(0.0), mask_decoder=True
    )
    loaded.need("mlm_head")
    if loaded.tokenizer.hash != tokenizer.hash:
        raise UserError(
            f"distillation.teacher: {folder} has another tokenizer than the student, so that their words "
            "cannot be compared. Start the student without model.init_from, or from a model with the "
            "teacher's tokenizer"
        )
    return Distillation(task, loaded.model, settings.temperature, weights=settings.weights)


@torch.no_grad()
def start_like(student: PretrainingModel, teacher: PretrainingModel) -> None:
    """Give a fresh student the teacher's weights wherever both have a parameter of the same name and shape.

    The student's layers get the weights of the teacher's layers that `evenly_spaced` chooses.
    """
    source = teacher.state_dict()
    given: dict[str, Tensor] = {}
    for name, own in student.state_dict().items():
        other = source.get(_name_in_teacher(name, student, teacher))
        if other is not None and other.shape[1:] == own.shape[1:] and len(other) > len(own):
            is_of_words = name in ("body.embeddings.word.weight", "mlm_head.bias")
            other = other[: len(own)] if is_of_words else other  # rows beyond the vocabulary
        if other is not None and other.shape == own.shape:
            given[name] = other
    student.load_state_dict(student.state_dict() | given)
    say(f"the student starts with {len(given)} of its {len(student.state_dict())} tensors from the teacher")


def _name_in_teacher(name: str, student: PretrainingModel, teacher: PretrainingModel) -> str:
    prefix = "body.encoder.layers."
    if not name.startswith(prefix):
        return name
    number, _, rest = name.removeprefix(prefix).partition(".")
    own, others = len(student.body.encoder.layers), len(teacher.body.encoder.layers)
    return f"{prefix}{evenly_spaced(others, own)[int(number)]}.{rest}"
