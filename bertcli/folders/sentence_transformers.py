"""How a sentence-transformers folder computes vectors: its `modules.json` and the files that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from bertcli.config.task import PoolingMode, TaskSettings, WindowMode
from bertcli.folders.config_file import read_architecture
from bertcli.folders.lengths import trained_length
from bertcli.system.errors import UserError
from bertcli.system.files import has_file
from bertcli.system.formats import is_inside, read_json, read_json_if_there, read_json_value
from bertcli.tokenizer.tokenizer import Tokenizer

_LENGTH_FILE = "sentence_bert_config.json"
SENTENCE_FILES = (
    "modules.json",
    _LENGTH_FILE,
    "config_sentence_transformers.json",
    "*[Pp]ooling/config.json",
)
"""Glob patterns of all files that are read here."""
_OLD_KEYS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The key of each mode before release 5 -> its name since then."""
_READ = ("mean", "cls", "max")


@dataclass(frozen=True)
class SentencePooling:
    """How a model's hidden states become one vector a text (Reimers and Gurevych 2019, section 3)."""

    mode: PoolingMode
    """Pooling over the real tokens, also special ones; cls: the first token's hidden state, no pooler."""
    normalize: bool
    """True if vectors are scaled to length 1."""
    max_length: int | None
    """Most tokens in a row. None: the model's limit."""
    windows: WindowMode = "first"
    """How longer texts are read: `task.windows`, with `task.doc_stride` and `task.max_windows`."""
    doc_stride: int = 64
    max_windows: int = 32

    def reading_as(self, settings: TaskSettings) -> SentencePooling:
        """The same with the windows of a task."""
        names = ("windows", "doc_stride", "max_windows")
        return replace(self, **{name: getattr(settings, name) for name in names})


PLAIN = SentencePooling("mean", normalize=False, max_length=None)
"""The pooling of a folder that names none."""


def read_pooling(folder: Path) -> SentencePooling | None:
    """The pooling of a sentence-transformers folder; None for another kind of folder.

    Raises `UserError` that names what bertcli does not support.
    """
    path = folder / "modules.json"
    if not has_file(path):
        return None
    modules = read_json_value(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise UserError(f"{path}: expected a list of modules. Copy or download it again.")
    kinds = [str(module.get("type")).rpartition(".")[2] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UserError(
            f"{path}: the modules are {', '.join(kinds)}; bertcli supports Transformer, Pooling and an "
            f"optional Normalize, in this order"
        )
    place = str(modules[1].get("path"))
    if not is_inside(place):
        raise UserError(
            f"{path}: the path {place!r} leads out of the folder. Get the model from someone you trust."
        )
    _check_texts_stay(folder)
    pooling = folder / place / "config.json"
    return SentencePooling(_mode(read_json(pooling), pooling), "Normalize" in kinds, _max_length(folder))


def write_pooling(folder: Path, pooling: SentencePooling, hidden: int) -> None:
    """Write the files that make an encoder's folder one of sentence-transformers, release 2 or later.

    The keys are the old ones, which new releases read too. Raises `OSError` if the disk is full or read-only.
    """
    kinds = ["Transformer", "Pooling", *(["Normalize"] if pooling.normalize else [])]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    modes = {key: name == pooling.mode for key, name in _OLD_KEYS.items()}
    files = {
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": hidden, **modes},
        _LENGTH_FILE: {"max_seq_length": pooling.max_length, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    }
    (folder / "1_Pooling").mkdir(exist_ok=True)  # Normalize has no file
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _mode(config: Mapping[str, Any], path: Path) -> PoolingMode:
    modes = config.get("pooling_mode", [name for key, name in _OLD_KEYS.items() if config.get(key)])
    modes = modes if isinstance(modes, list) and modes else [modes or "mean"]
    if len(modes) != 1 or modes[0] not in _READ:
        raise UserError(
            f"{path}: pools by {' and '.join(map(str, modes))}; bertcli pools by one of {', '.join(_READ)}"
        )
    return cast(PoolingMode, modes[0])


def _check_texts_stay(folder: Path) -> None:
    """Raise `UserError` for changes to the text before encoding that bertcli does not support."""
    prompts = folder / "config_sentence_transformers.json"
    if prompt := read_json_if_there(prompts).get("default_prompt_name"):
        raise UserError(
            f"{prompts}: puts the prompt {prompt!r} before every text, which bertcli does not. Set "
            f"default_prompt_name to null, and write the prompt into your texts."
        )
    path = folder / _LENGTH_FILE
    if read_json_if_there(path).get("do_lower_case") and not Tokenizer.load(folder).lowercase:
        raise UserError(
            f"{path}: do_lower_case asks for lower case, but the folder's tokenizer keeps upper case. Change "
            f"one of them."
        )


def _max_length(folder: Path) -> int | None:
    """Most tokens in a row, at most the model's positions: some folders name more, which no text reached.

    A folder that names none has its tokenizer's, as sentence-transformers reads it. None: there is none.
    """
    path = folder / _LENGTH_FILE
    length = read_json_if_there(path).get("max_seq_length")
    if length is None and (length := trained_length(folder)) is None:
        return None
    cost = Tokenizer.load(folder).frame.cost(pair=False)
    if type(length) is not int or length <= cost:
        raise UserError(f"{path}: max_seq_length: {length!r} is not a number of tokens above {cost}")
    return min(length, read_architecture(folder / "config.json").usable_positions)
