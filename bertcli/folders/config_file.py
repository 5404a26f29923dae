"""`config.json` <-> our sizes; a key that changes the mathematics is supported, or refused by name."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertcli.config.model import ModelConfig
from bertcli.config.run import ModelRecipe
from bertcli.families.family import LARGEST_SIZE, Family, Sharing
from bertcli.families.registry import FAMILIES, UNNAMED, fresh_of
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.model.architecture import Architecture, first_std
from bertcli.objectives.registry import MLM, Objective
from bertcli.system.errors import UserError
from bertcli.system.formats import read_json, read_json_if_there
from bertcli.tokenizer.tokenizer import Tokenizer

NEW_VOCABULARY = "bertcli_new_vocabulary"
"""The key of a `config.json` that says: this vocabulary is new to the model, which has not learned it yet."""
_MOST_LAYERS = 1000
"""The upper limit of `layers`: a larger model could not be built, not even without values."""


def read_architecture(path: Path) -> Architecture:
    """The sizes in a Hugging Face `config.json`.

    Raises `UserError` that lists every key that is missing, impossible, or asks for other mathematics.
    """
    return to_architecture(read_json(path), str(path))


def to_architecture(config: Mapping[str, Any], where: str) -> Architecture:
    """The sizes in the keys of a `config.json`; raises as `read_architecture`."""
    family = find_family(config, where)
    problems = [
        f"{key}: {config[key]!r} is not {family.a_name}; expected {allowed[0]!r}"
        for key, allowed in family.fixed.items()
        if key in config and not any(config[key] is value or config[key] == value for value in allowed)
    ]
    values: dict[str, Any] = {**family.parts, "family": family.model_type}
    for ours, (key, default) in family.sizes.items():
        most = _MOST_LAYERS if ours == "layers" else LARGEST_SIZE
        values[ours] = _positive_int(key, config.get(key, default), most, problems=problems)
    for ours, (key, default) in family.rates.items():
        value = config.get(key, default)
        values[ours] = None if value is default is None else _rate(key, value, problems)
    for ours, (key, known) in family.choices.items():
        values[ours] = _choice(key, config.get(key, next(iter(known))), known, problems=problems)
    try:
        values |= family.derive(config)
    except ValueError as error:
        problems.append(str(error))
    if values.get("init_std") == 0:
        problems.append(
            f"{family.rates['init_std'][0]}: 0 would give all weights of a new head the same start value"
        )
    if values["hidden"] % values["heads"]:
        hidden, heads = family.sizes["hidden"][0], family.sizes["heads"][0]
        problems.append(f"{heads}: {values['heads']} does not divide {hidden} {values['hidden']}")
    if values["max_positions"] <= values.get("position_offset", 0):
        key = family.sizes["max_positions"][0]
        problems.append(f"{key}: {values['max_positions']} leaves no position for a token")
    if problems:
        raise UserError("\n  ".join([f"{where}:", *problems]))
    return Architecture(**values)


def learns_anew(init_from: str | None) -> bool:
    """True if a run with this `model.init_from` has its vocabulary to learn; None: a new model."""
    if init_from is None:
        return True
    return read_json_if_there(Path(init_from) / "config.json").get(NEW_VOCABULARY) is True


def find_family(config: Mapping[str, Any], where: str) -> Family:
    """The family that a `config.json` names. Raises `UserError` for one that is not supported."""
    model_type = config.get("model_type", UNNAMED)
    if isinstance(model_type, str) and model_type in FAMILIES:
        return FAMILIES[model_type]
    known = ", ".join(f"{name!r} ({family.name})" for name, family in FAMILIES.items())
    raise UserError(f"{where}: model_type is {model_type!r}; bertcli reads {known}")


def config_json(
    architecture: Architecture, kind: str, tokenizer: Tokenizer, more: Mapping[str, Any] | None = None
) -> str:
    """The text of a `config.json` that transformers 4 and 5 read.

    Args:
        kind: what the folder holds, a key of `Family.classes`.
        more: further keys.
    """
    family = FAMILIES[architecture.family]
    keys = {ours: key for ours, (key, _) in {**family.sizes, **family.rates}.items()}
    chosen = {
        key: next(theirs for theirs, value in known.items() if value == getattr(architecture, ours))
        for ours, (key, known) in family.choices.items()
    }
    first, last = family.row_keys
    config = {
        "architectures": [family.classes[kind]],
        "dtype": "float32",
        "model_type": family.model_type,
        "pad_token_id": tokenizer.pad_id,
        **dict.fromkeys(first, tokenizer.frame.prefix[0]),
        **dict.fromkeys(last, tokenizer.frame.suffix[-1]),
        "tie_word_embeddings": True,
        **family.written,
        **{key: getattr(architecture, ours) for ours, key in keys.items()},
        **chosen,
        **family.keys(architecture),
        **(more or {}),
    }
    return json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _positive_int(key: str, value: Any, most: int, problems: list[str]) -> int:
    if value is None:
        problems.append(f"{key}: missing")
    elif type(value) is not int or value < 1:
        problems.append(f"{key}: {value!r} is not an integer above 0")
    elif value > most:
        problems.append(f"{key}: {value} is too large; at most {most:,} is supported")
    else:
        return value
    return 1


def _choice(key: str, value: Any, known: Mapping[str, Any], problems: list[str]) -> Any:
    if not isinstance(value, str) or value not in known:
        problems.append(f"{key}: {value!r} is not supported; expected one of {', '.join(known)}")
        return next(iter(known.values()))
    return known[value]


def _rate(key: str, value: Any, problems: list[str]) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1:
        problems.append(f"{key}: {value!r} is not a number from 0 to below 1")
        return 0.0
    return float(value)


def new_architecture(
    config: ModelRecipe, vocab_size: int, pad_id: int | None = None, objective: Objective = MLM
) -> Architecture:
    """The sizes that `config` asks for, with all values that its family fixes, and those of a generator.

    Args:
        pad_id: the pad id of the vocabulary, because RoBERTa's positions begin after it; None: the pad id of
            a vocabulary that is trained for the family.

    Raises:
        UserError: sizes that the family cannot have.
    """
    fresh, positions, given = config.fresh, config.positions, config.sizes()
    family = fresh.family
    if pad_id is None:
        pad_id = list(TOKENIZERS[family.model_type].names).index("pad_token")
    sizes = {"vocab_size": vocab_size, "max_positions": positions, **given._asdict()}
    rates = {"dropout": config.dropout, "attention_dropout": config.dropout}
    keys: dict[str, Any] = {
        "model_type": family.model_type,
        "pad_token_id": pad_id,
        **{family.sizes[ours][0]: size for ours, size in sizes.items()},
        **{family.rates[ours][0]: rate for ours, rate in rates.items()},
        **fresh.keys(given.hidden, positions),
    }
    architecture = to_architecture(keys, f"a new {family.name}")
    architecture = architecture.with_positions(positions).with_rotary_base(config.rotary_base)
    if config.initialization == "neighbors" and architecture.position_table:
        architecture = replace(architecture, init_std=first_std(architecture.hidden))
    if not objective.generates:
        return replace(architecture, mask_decoder="mask_decoder.positions" in family.tensors)
    return replace(architecture, generator=_generator(config, architecture))


def going_on(config: ModelRecipe) -> Callable[[Architecture], Architecture]:
    """Sizes in the folder of `model.init_from` -> those of the run, with its dropout, positions and rotary
    base."""

    def sizes(found: Architecture) -> Architecture:
        longest = found.with_positions(config.max_positions or found.usable_positions)
        return longest.with_dropout(config.dropout).with_rotary_base(config.rotary_base)

    return sizes


def _generator(config: ModelConfig, discriminator: Architecture) -> Architecture:
    """The sizes of the generator, whose embeddings are as wide as the discriminator's."""
    fresh, given = fresh_of(discriminator.family), config.generator
    assert fresh.generator is not None
    usual = fresh.generator(discriminator.hidden)
    share = given.width_share or usual.width_share
    heads = max(1, round(discriminator.heads * share))
    hidden, width = heads * discriminator.head_size, discriminator.embedding or discriminator.hidden
    if hidden != width and "body.embeddings.widen" not in fresh.family.tensors:
        raise UserError(
            f"model.generator.width_share: {share:g}, but embeddings of {fresh.family.a_name} have the "
            "hidden size; set it to 1"
        )
    return replace(
        discriminator,
        layers=given.layers or max(1, round(discriminator.layers * usual.layers_share)),
        hidden=hidden,
        heads=heads,
        feed_forward=round(discriminator.feed_forward * hidden / discriminator.hidden),
        embedding=None if hidden == width else width,
    )


def sharing(config: ModelConfig, family: str) -> Sharing:
    """How generator and discriminator share embeddings. `family` is their `model_type`."""
    fresh = fresh_of(family)
    assert fresh.generator is not None
    return config.generator.sharing or fresh.generator(0).sharing
