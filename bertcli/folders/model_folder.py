"""A pretraining model with its tokenizer <-> a Hugging Face folder; a folder -> its encoder alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from bertcli.families.family import PARTS, Sharing
from bertcli.folders.fill import LoadReport, build_from
from bertcli.folders.locate import GENERATOR, check_generator
from bertcli.folders.model_files import Adapt, Declaration, read_model_files, write_model_files
from bertcli.folders.task_folder import task_type
from bertcli.folders.weights import read_weights, write_safetensors
from bertcli.model.pretraining import OF_GENERATOR, PretrainingModel, ReplacedTokenModel, generator_weights
from bertcli.model.task_models import PooledModel
from bertcli.objectives.registry import MLM, MLM_NSP, Objective
from bertcli.system.errors import UserError
from bertcli.system.files import has_file
from bertcli.tasks.supervised import task_class
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class LoadedModel:
    """The pretraining model of a folder, and what became of each weight."""

    model: PretrainingModel
    tokenizer: Tokenizer
    report: LoadReport
    task: str | None = None
    """The task that the folder was fine-tuned for; None if it was not fine-tuned."""

    @property
    def objective(self) -> Objective:
        """What the model learned, by its heads."""
        pairs = self.report.family.pair_objective
        return MLM if pairs is None or self.model.pair_head is None else pairs

    def need(self, head: str, *read: str) -> None:
        """Raise `UserError` unless the folder holds `head` (of `PARTS`) and the parts that it reads: new
        parts cannot predict."""
        if self.task is not None:
            verb = "predict" if task_class(self.task).head else "embed"
            raise UserError(f"the model is fine-tuned for {self.task}: give it to bertcli {verb}")
        family = self.report.family
        is_missing = head == "pair_head" and MLM_NSP not in family.objectives
        if self.report.has(head, *read) and not is_missing:
            return
        if is_missing:
            raise UserError(
                f"the model is {family.a_name}, and that family has no {PARTS[head]}. For a prediction about "
                "two texts, fine-tune it on labeled pairs (bertcli finetune), then run bertcli predict"
            )
        discriminator = family.tensors.get("rtd_head.dense")
        if discriminator is not None and f"{discriminator}.weight" in self.report.left_aside:
            raise UserError(
                f"the model is the discriminator of {family.a_name}: it tells replaced words from others "
                f"and has no {PARTS[head]}. Give the folder of the generator; the discriminator is "
                "for bertcli finetune and bertcli embed"
            )
        kind = "pretraining" if "pretraining" in family.classes else "masked-lm"
        raise UserError(
            f"the model has no {PARTS[head]}: give one that was pretrained with it, by bertcli pretrain "
            f"(data.objective), or as {family.classes[kind]} of transformers"
        )


def save_model_folder(
    folder: Path,
    model: PretrainingModel,
    tokenizer: Tokenizer,
    card: str | None = None,
    trained_length: int | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write a pretraining model as `folders.model_files.write_model_files` does.

    The tied decoder is not written, as in transformers. A model without the pair head is declared a
    masked language model.

    Args:
        trained_length: the length for `folders.model_files.Declaration`.
        weights: weights to write in place of the model's own.
    """
    kind = "masked-lm" if model.pair_head is None else "pretraining"
    declared = Declaration(kind, trained_length=trained_length)
    write_model_files(folder, model, tokenizer, declared=declared, card=card, weights=weights)


def load_model_folder(
    folder: Path, pairs: bool | None = None, adapt: Adapt | None = None, mask_decoder: bool = False
) -> LoadedModel:
    """Read a model folder, ours or any of the family's classes in transformers, on the CPU in fp32.

    Heads that the folder lacks are initialized from torch's generator and named in the report; other weights
    of the folder are left aside and named.

    Args:
        folder: holds `config.json`, weights and a vocabulary (`bertcli.folders.locate.resolve_model`).
        pairs: whether the model has pooler and pair head; None: it does if the folder has the pair head.
        adapt: changes rates, positions or rotary base, as in `folders.model_files.read_model_files`.
        mask_decoder: build the enhanced mask decoder, if the folder has it, as in training; transformers'
            classes do not have it.

    Raises:
        UserError: a file is missing or damaged; the config asks for other mathematics; weights that are
            unknown or missing, or have another shape; a tokenizer with ids that the model lacks.
    """
    files = read_model_files(folder, adapt)
    if pairs is None:
        pairs = files.holds("pair_head.dense.weight")
    architecture = replace(files.architecture, mask_decoder=mask_decoder and files.holds_mask_decoder)
    model, report = build_from(files, lambda: PretrainingModel(architecture, pairs), may_be_new=PARTS)
    task = task_type(files.config, files.family)
    return LoadedModel(model, files.tokenizer, report, task=task)


def load_encoder_folder(folder: Path) -> tuple[PooledModel, Tokenizer]:
    """The body of any model folder, with its pooler if it has one; heads are not read.

    Raises `UserError` as `load_model_folder` does.
    """
    files = read_model_files(folder)
    model, _ = build_from(files, lambda: PooledModel(files.architecture, files.holds("pooler.dense.weight")))
    return model, files.tokenizer


DIFFERENCES = "differences.safetensors"
_DIFFERENCE = ".difference"


def save_rtd_folder(
    folder: Path,
    model: ReplacedTokenModel,
    tokenizer: Tokenizer,
    trained_length: int | None,
    card: str | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write a discriminator and, in a subfolder, its generator; arguments as for `save_model_folder`."""
    state = weights or model.state_dict()
    of_generator = generator_weights(state)
    own = {name: value for name, value in state.items() if not name.startswith(OF_GENERATOR)}
    differences = {name: own.pop(name) for name in list(own) if name.endswith(_DIFFERENCE)}
    for name, difference in differences.items():
        table = f"{name.removesuffix(_DIFFERENCE)}.weight"
        own[table] = of_generator[table] + difference
    declared = Declaration("discriminator", trained_length=trained_length)
    write_model_files(folder, model, tokenizer, declared=declared, card=card, weights=own)
    save_model_folder(
        folder / GENERATOR,
        model=model.generator,
        tokenizer=tokenizer,
        trained_length=trained_length,
        weights=of_generator,
    )
    if differences:
        write_safetensors(folder / DIFFERENCES, differences)


def load_rtd_folder(folder: Path, sharing: Sharing, adapt: Adapt | None = None) -> ReplacedTokenModel:
    """Read a discriminator and its generator, on the CPU in fp32.

    Args:
        adapt: as for `load_model_folder`, for both models.

    Raises:
        UserError: as `load_model_folder`; there is no generator; its vocabulary, or with tied embeddings its
            embeddings, differ from the discriminator's.
    """
    check_generator(folder)
    files = read_model_files(folder, adapt)
    found, _ = build_from(files, lambda: PooledModel(files.architecture, pooler=False, rtd_head=True))
    loaded = load_model_folder(folder / GENERATOR, pairs=False, adapt=adapt)
    loaded.need("mlm_head")
    generator, own_size = loaded.model, files.architecture.vocab_size
    if generator.architecture.vocab_size != own_size or loaded.tokenizer.hash != files.tokenizer.hash:
        raise UserError(
            f"{folder / GENERATOR}: has another vocabulary than the discriminator in {folder}; give the two "
            "models that were trained together"
        )
    architecture = replace(files.architecture, generator=generator.architecture)
    model = ReplacedTokenModel(architecture, sharing)
    state = {f"{OF_GENERATOR}{name}": value for name, value in generator.state_dict().items()}
    state |= found.state_dict()
    if sharing == "tied":
        _check_tied(state, folder)
    else:
        stored = read_weights(folder / DIFFERENCES) if has_file(folder / DIFFERENCES) else {}
        for name in [name for name in model.state_dict() if name.endswith(_DIFFERENCE)]:
            table = f"{name.removesuffix(_DIFFERENCE)}.weight"
            own = state.pop(table)
            # A sum in fp32 minus one of its terms is not exactly the other term.
            state[name] = own - state[f"{OF_GENERATOR}{table}"]
            if name in stored and stored[name].shape == own.shape:
                state[name] = stored[name]
    model.load_state_dict(state)
    return model


def _check_tied(state: Mapping[str, Tensor], folder: Path) -> None:
    embeddings = ("body.embeddings.word", "body.embeddings.position", "body.embeddings.segment")
    for name in [name for name in state if name.startswith((*embeddings, "body.embeddings.norm"))]:
        if not torch.equal(state[name], state[f"{OF_GENERATOR}{name}"]):
            raise UserError(
                f"{folder}: {name} of the discriminator is not that of its generator. Set "
                "model.generator.sharing to gradient-disentangled, or give the two models that were trained "
                "together"
            )
