"""`model.init_from` and a teacher: what their folders set, and whether the config fits; torch is not
needed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bertcli.config.model import HEAD_SIZE, PRESETS, ModelConfig, Sizes
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.families.registry import fresh_of
from bertcli.folders.config_file import read_architecture
from bertcli.model.architecture import Architecture
from bertcli.objectives.registry import MLM, OBJECTIVES
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer

_KINDS = {"WordPiece": "wordpiece", "BPE": "byte-bpe", "Unigram": "unigram"}


def with_sizes_of(config: PretrainConfig, folder: Path) -> PretrainConfig:
    """`config` with the sizes, the preset that fits (or null) and the vocabulary of the model in `folder`.

    Keys with their default, null or auto cannot contradict the folder. Raises `UserError` that lists all
    contradictions, or if the folder cannot be read.
    """
    sizes, vocabulary = read_architecture(folder / "config.json"), _vocabulary(folder)
    positions = max(sizes.usable_positions, config.model.max_positions or 0)
    model = {key: getattr(sizes, key) for key in Sizes._fields} | {"max_positions": positions}
    problems = [
        *_other_family(config.model, sizes),
        *_contradictions("model", config.model, model),
        *_other_preset(config.model, sizes),
        *_contradictions("tokenizer", config.tokenizer, vocabulary),
    ]
    if problems:
        head = f"model.init_from: {folder} sets sizes and vocabulary, but the config has other values:"
        advice = "Leave these keys out, or leave model.init_from out to train a new model"
        raise UserError("\n  ".join([head, *problems, advice]))
    model |= {"preset": _fitting_preset(sizes)}
    return with_values(config, {"model": model, "tokenizer": _without_kind(vocabulary)})


def check_max_length(config: PretrainConfig) -> None:
    """Raise `UserError` for rows longer than the model of `init_from` reads; `config` has its sizes."""
    positions = config.model.max_positions
    if config.model.init_from is not None and positions is not None and config.data.max_length > positions:
        raise UserError(
            f"data.max_length ({config.data.max_length}) is longer than the positions of the model in "
            f"{config.model.init_from} ({positions}); lower data.max_length, or raise model.max_positions"
        )


def with_vocabulary_of(config: PretrainConfig, folder: Path) -> PretrainConfig:
    """`config` with the vocabulary of its teacher, in `folder`; raises `UserError` as `with_sizes_of`."""
    vocabulary = _vocabulary(folder)
    if problems := list(_contradictions("tokenizer", config.tokenizer, vocabulary)):
        head = f"distillation.teacher: {folder} sets the vocabulary, but the config has other values:"
        raise UserError("\n  ".join([head, *problems, "Leave these keys out"]))
    return with_values(config, {"tokenizer": _without_kind(vocabulary)})


def _vocabulary(folder: Path) -> dict[str, Any]:
    tokenizer = Tokenizer.load(folder)
    return {
        "kind": _KINDS.get(tokenizer.kind, tokenizer.kind),
        "vocab_size": tokenizer.vocab_size,
        "lowercase": tokenizer.lowercase,
        "strip_accents": tokenizer.strips_accents,
    }


def _without_kind(vocabulary: dict[str, Any]) -> dict[str, Any]:
    """The vocabulary's values without the kind, which is for training one."""
    return {key: value for key, value in vocabulary.items() if key != "kind"}


def _contradictions(section: str, given: BaseModel, true: dict[str, Any]) -> Iterator[str]:
    for key in sorted(given.model_fields_set & true.keys()):
        if (value := getattr(given, key)) not in (None, "auto") and value != true[key]:
            yield f"{section}.{key}: {_say(value)}; the folder has {_say(true[key])}"


def _other_family(model: ModelConfig, sizes: Architecture) -> Iterator[str]:
    if model.family is not None and model.fresh.family.model_type != sizes.family:
        yield f"model.family: {model.family}; the folder has a model of the type {sizes.family}"


def _other_preset(model: ModelConfig, sizes: Architecture) -> Iterator[str]:
    """A line if the preset has other sizes than the folder; a size that the config gives is not compared."""
    if "preset" not in model.model_fields_set or model.preset is None:
        return
    other = [
        f"{key} {getattr(sizes, key)} instead of {value}"
        for key, value in model.sizes(fresh_of(sizes.family))._asdict().items()
        if getattr(model, key) is None and getattr(sizes, key) != value
    ]
    if other:
        yield f"model.preset: {model.preset}; the folder has {', '.join(other)}"


def _fitting_preset(sizes: Architecture) -> str | None:
    inner = round(fresh_of(sizes.family).feed_forward * sizes.hidden)
    if sizes.heads != max(1, sizes.hidden // HEAD_SIZE) or sizes.feed_forward != inner:
        return None
    return next((name for name, found in PRESETS.items() if found == (sizes.layers, sizes.hidden)), None)


def _say(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_teacher(config: PretrainConfig, hidden: int) -> None:
    """Check what the config and the teacher's `config.json` say, before a corpus is read.

    Args:
        config: the config, whose teacher (if any) is located and whose objective is decided.
        hidden: the hidden size of the student.

    Raises:
        UserError: the objective has no words to distill; the teacher reads shorter rows, or has another
            hidden size although hidden states should be compared.
    """
    if (distillation := config.distillation) is None:
        return
    if (objective := OBJECTIVES[config.data.objective]).generates:
        raise UserError(
            f"distillation: the objective is {objective.name}, whose model predicts no words; set "
            f"data.objective to {MLM.name}"
        )
    teacher = read_architecture(Path(distillation.teacher) / "config.json")
    check_teacher_reads(teacher, config.data.max_length, "data.max_length")
    if hidden != teacher.hidden and distillation.weights[2]:
        raise UserError(
            f"distillation.weights: the last one compares hidden states, but the student has {hidden} "
            f"features and the teacher {teacher.hidden}; set it to 0, or model.hidden to {teacher.hidden}"
        )


def check_teacher_reads(teacher: Architecture, length: int, key: str) -> None:
    """Raise `UserError` if the teacher cannot read rows of `length` tokens, which `key` asks for."""
    if length > teacher.usable_positions:
        raise UserError(
            f"{key} ({length}) is longer than the rows that distillation.teacher reads "
            f"({teacher.usable_positions}); lower {key}"
        )
