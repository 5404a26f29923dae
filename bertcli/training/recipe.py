"""Rules for keys that are `auto` by default: their values follow from text, model and steps of the run.

The published settings (rate 1e-4, 256 rows of 128) leave a small BERT on the plateau of word frequencies.
LOG.md, "Getting past the unigram plateau", has the experiments behind these rules.
"""

import math
from pathlib import Path
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.model import ModelConfig
from bertcli.config.run import PretrainRecipe, as_kind, with_decisions
from bertcli.config.schema import DEFAULT_STEPS, MASK_SPLIT, PretrainConfig
from bertcli.config.section import AUTO, OptimizerName, mean_of
from bertcli.corpus.files import corpus_files
from bertcli.corpus.manifest import MANIFEST, Manifest, read_manifest
from bertcli.corpus.matching import given_tokenizer, load_given_tokenizer, output_paths, store_folder
from bertcli.corpus.sample import count_characters, text_bytes
from bertcli.families.family import FamilyName, Fresh
from bertcli.families.registry import FAMILIES, fresh_of
from bertcli.folders.config_file import learns_anew, read_architecture
from bertcli.folders.init_from import check_teacher
from bertcli.folders.locate import check_generator, locate_init_from
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report, counted
from bertcli.tokenizer.normalize import MIN_ALPHABET

KEYS = (
    ("tokenizer", "vocab_size"),
    ("training", "batch_size"),
    ("training", "optimizer"),
    ("training", "learning_rate"),
    ("training", "warmup_steps"),
    ("data", "mask_rate"),
    ("model", "dropout"),
)
"""The keys that text, sizes and steps decide."""

BYTES_PER_TOKEN = 4.3
"""Bytes per token of English text in UTF-8; assumed for any text."""
LARGEST_VOCABULARY = 30522
"""The size of BERT's own vocabulary."""
PLATEAU_STEPS = 200
"""Steps in which a new model gets past the plateau of word frequencies, with auto's values (`LOG.md`)."""
_FIXED_ENTRIES = 256
"""Upper limit for the number of special tokens and ASCII characters, alone and inside a word."""
BATCH_SIZES = ((32, 10_000), (64, 30_000), (128, 100_000), (256, None))
"""Pairs (rows per step, number of steps); a size is used for runs with fewer steps than this number."""


def decide_recipe(config: PretrainConfig, report: Report, rebuild: bool = False) -> PretrainRecipe:
    """The config with located model folders, and a value for each key that is auto.

    The same files, model and steps give the same values. An existing store keeps its vocabulary, unless
    `rebuild` says that it will be built again. `report` is called with the decided `KEYS`.

    Raises:
        UserError: `corpus.files`, `model.init_from`, the teacher or the store cannot be read; the family has
            no head for the objective; a key belongs to another objective or family.
    """
    config = _decide_by_family(locate_init_from(config))
    check_teacher(config, _sizes(config)[1])
    if OBJECTIVES[config.data.objective].generates and config.model.init_from is not None:
        check_generator(Path(config.model.init_from))
    undecided = [(section, key) for section, key in KEYS if getattr(getattr(config, section), key) == AUTO]
    if not undecided:
        return as_kind(PretrainRecipe, config, {})
    store = store_folder(config)
    manifest = read_manifest(store) if (store / MANIFEST).is_file() and not rebuild else None
    files = corpus_files(config.corpus, output_paths(config), missing_ok=manifest is not None)
    num_bytes = text_bytes(files)
    if not num_bytes and manifest is not None:  # the files were removed after the store was built
        num_bytes = manifest.text.bytes
    vocab_size = config.tokenizer.vocab_size
    if vocab_size == "auto":
        vocab_size = _stored_size(manifest) or _vocab_size(config, num_bytes)
    values = {("tokenizer", "vocab_size"): vocab_size}
    values |= _values(config, vocab_size, num_bytes / BYTES_PER_TOKEN)
    decided: dict[str, dict[str, Any]] = {}
    for section, key in undecided:
        decided.setdefault(section, {})[key] = values[section, key]
    report(f"{_reason(config, num_bytes)}: {_listed(decided)}")
    return as_kind(PretrainRecipe, config, decided)


def new_vocabulary(config: PretrainConfig, family: FamilyName) -> PretrainRecipe:
    """The recipe of a new model of `family` with the text and the tokenizer of `config`, and no other key of
    it. Raises as `decide_recipe`."""
    given = config.model_dump(exclude_unset=True, include={"output_dir", "corpus", "tokenizer"})
    given["corpus"].pop("general", None)
    asked = check_config(PretrainConfig, given | {"model": {"family": family}}, "the config")
    return decide_recipe(asked, lambda line: None, rebuild=True)


def _decide_by_family(config: PretrainConfig) -> PretrainConfig:
    fresh, given = _fresh(config), config.data.objective
    family = fresh.family
    objective = fresh.objective if given == "auto" else OBJECTIVES[given]
    if objective not in family.objectives:
        raise UserError(
            f"data.objective: {objective.name}, but the model is {family.a_name}, which has no head for it; "
            f"possible here: {', '.join(each.name for each in family.objectives)}"
        )
    for other in OBJECTIVES.values():
        for section, key in other.keys:
            part = getattr(config, section)
            if other is not objective and getattr(part, key) != type(part).model_fields[key].default:
                raise UserError(
                    f"{section}.{key} is for data.objective: {other.name}, and the objective is "
                    f"{objective.name}; leave it out"
                )
    for other in FAMILIES.values():
        for key in set(other.model_keys) - set(family.model_keys):
            if getattr(config.model, key) != ModelConfig.model_fields[key].default:
                raise UserError(
                    f"model.{key} is for {other.name}, and the model is {family.a_name}; leave it out"
                )
    values: dict[str, dict[str, Any]] = {
        "tokenizer": {"lowercase": fresh.lowercase},
        "data": {
            "objective": objective.name,
            "mask_split": fresh.mask_split if objective.generates else MASK_SPLIT,
        },
    }
    if not given_tokenizer(config):
        values["tokenizer"]["kind"] = fresh.tokenizer
    return with_decisions(config, values)


def _fresh(config: PretrainConfig) -> Fresh:
    """The defaults of the family of the config's model, or of the model in the folder of `init_from`."""
    if config.model.init_from is None:
        return config.model.fresh
    return fresh_of(read_architecture(Path(config.model.init_from) / "config.json").family)


def _values(config: PretrainConfig, vocab_size: int, text_tokens: float) -> dict[tuple[str, str], Any]:
    """Section and key -> value, for all `KEYS` except the vocabulary size."""
    layers, hidden = _sizes(config)
    anew, length = learns_anew(config.model.init_from), config.data.max_length
    batch_size, steps = _batch_size_and_steps(config, text_tokens)
    times_read = steps * mean_of(batch_size) * length / max(1.0, text_tokens)
    parameters = 12 * layers * hidden**2 + vocab_size * hidden
    memorizes = times_read >= 10 and parameters > text_tokens
    starts_anew = anew and not _starts_like_teacher(config, hidden)
    factor = _fresh(config).rate if anew else TRAINED
    given = config.training.optimizer
    optimizer = given if given != "auto" else "muon" if starts_anew else "adamw"
    return {
        ("training", "batch_size"): batch_size,
        ("training", "optimizer"): optimizer,
        ("training", "learning_rate"): peak_rate(layers, hidden, optimizer, factor=factor),
        ("training", "warmup_steps"): min(10_000, round(0.08 * steps)),
        ("data", "mask_rate"): _mask_rate(config),
        ("model", "dropout"): 0.1 if memorizes or not anew else 0.0,
    }


def _starts_like_teacher(config: PretrainConfig, hidden: int) -> bool:
    """True if a student starts with its teacher's layers and positions, which needs the same hidden size."""
    if config.distillation is None:
        return False
    return read_architecture(Path(config.distillation.teacher) / "config.json").hidden == hidden


def _mask_rate(config: PretrainConfig) -> float:
    if config.distillation is not None or not learns_anew(config.model.init_from):
        return 0.15
    return _fresh(config).mask_rate or 0.4


def _vocab_size(config: PretrainConfig, num_bytes: float) -> int:
    """The power of two nearest to the square root of the text's bytes: 2,048 for 5 MB, 8,192 for 64 MB.

    It is at least four times the number of characters that the text needs, because a vocabulary keeps a
    quarter of its entries for them. It also has room for rare characters, each alone and inside a word.
    """
    given = load_given_tokenizer(config)
    if given is not None:
        return given.vocab_size
    if config.tokenizer.kind == "byte-bpe":  # bytes cover any text
        return min(LARGEST_VOCABULARY, max(2 * 256, _power_of_two(math.sqrt(num_bytes))))
    files = corpus_files(config.corpus, output_paths(config))
    needed, characters = count_characters(files, config.corpus)
    smallest = max(4 * needed, 2 * min(characters, MIN_ALPHABET) + _FIXED_ENTRIES)
    size = max(_power_of_two(math.sqrt(num_bytes)), 2 ** math.ceil(math.log2(smallest)))
    return min(LARGEST_VOCABULARY, size)


def _stored_size(manifest: Manifest | None) -> int | None:
    """The vocabulary size in the config that built the store, or the size of the given tokenizer."""
    return manifest and manifest.options.get("tokenizer.vocab_size", manifest.vocab_size)


def _power_of_two(number: float) -> int:
    return 2 ** round(math.log2(max(1.0, number)))


def _batch_size_and_steps(config: PretrainConfig, text_tokens: float) -> tuple[int | tuple[int, int], int]:
    """The rows per step and the number of steps, which depends on the rows if epochs are given."""
    epochs, given = config.training.epochs, config.training.batch_size
    for batch_size, below in BATCH_SIZES if given == "auto" else ((given, None),):
        steps = config.training.steps or DEFAULT_STEPS
        if epochs is not None:
            steps = math.ceil(epochs * text_tokens / (mean_of(batch_size) * config.data.max_length))
        if below is None or steps < below:
            return batch_size, steps
    raise AssertionError("unreachable: the last batch size is for any number of steps")


TRAINED = 0.2
"""Rate of weights that are already trained, as a share of that of new ones of a BERT."""


def peak_rate(layers: int, hidden: int, optimizer: OptimizerName, factor: float) -> float:
    """The peak learning rate: with Muon and a factor of 1, tiny 4e-3, mini 2.4e-3, small 1.4e-3, base 6e-4,
    large 3.4e-4; that of AdamW is three fifths of it.

    It decreases with width, and with depth beyond four layers: both make post-LayerNorm less stable.

    Args:
        factor: `Fresh.rate` for new weights, `TRAINED` for others.
    """
    rate = factor * (4e-3 if optimizer == "muon" else 2.4e-3)
    rate *= (128 / hidden) ** 0.75 * min(1.0, math.sqrt(4 / layers))
    return float(f"{rate:.1e}")


def _sizes(config: PretrainConfig) -> tuple[int, int]:
    """Layers and hidden size of the model."""
    if config.model.init_from is None:
        return config.model.sizes()[:2]
    sizes = read_architecture(Path(config.model.init_from) / "config.json")
    return sizes.layers, sizes.hidden


def _reason(config: PretrainConfig, num_bytes: float) -> str:
    layers, hidden = _sizes(config)
    epochs, steps = config.training.epochs, config.training.steps or DEFAULT_STEPS
    length = f"{epochs:g} epoch{'s' * (epochs != 1)}" if epochs else counted(steps, "step")
    return f"auto, for about {num_bytes / 1e6:,.1f} MB of text, {layers} layers x {hidden} and {length}"


def _listed(decided: dict[str, dict[str, Any]]) -> str:
    values = [(f"{section}.{key}", value) for section, keys in decided.items() for key, value in keys.items()]
    return ", ".join(f"{name} {_figure(value)}" for name, value in values)


def _figure(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if value >= 1000 else f"{value:g}"
