"""Good files of every kind, made once a process: what the strategies damage."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bertcli.config.run import PretrainRecipe
from bertcli.corpus.build import prepare_store
from bertcli.folders.model_folder import load_model_folder
from tests.decided import recipe
from tests.folders.folders import saved_model, saved_task, tiny_tokenizer
from tests.folders.tf_values import TF_CHECKPOINT
from tests.tokenizer.tokenizers_of import make_tokenizer_folder

TEXT = "The cat sat on the mat. It ran.\nA dog was of night.\n\nThe house ran. Dark!\n\nIt is. It was.\n\n"


@functools.cache
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="bertcli-good-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


@functools.cache
def good_tokenizer() -> Path:
    folder = _root() / "tokenizer"
    tiny_tokenizer().save(folder)
    return folder


@functools.cache
def good_model() -> Path:
    saved_model(_root() / "model")
    load_model_folder(_root() / "model")  # torch makes a folder of its own the first time
    return _root() / "model"


@functools.cache
def good_tokenizer_of(model_type: str, slow: bool) -> Path:
    """A folder as published models have it; `slow`: without a tokenizer.json."""
    return make_tokenizer_folder(model_type, _root() / f"{model_type}-{slow}", slow=slow, vocab_size=300)


@functools.cache
def good_task(kind: str) -> Path:
    saved_task(_root() / kind, kind)
    return _root() / kind


@functools.cache
def good_tensorflow() -> Path:
    return Path(shutil.copytree(TF_CHECKPOINT, _root() / "tensorflow"))


@functools.cache
def good_store() -> Path:
    text = _root() / "corpus.txt"
    text.write_text(TEXT * 20, encoding="utf-8")
    return prepare_store(store_config(text, _root() / "run"), lambda line: None).folder


def store_config(text: Path, run: Path, **corpus: Any) -> PretrainRecipe:
    """Raises `UserError` for keys that a config may not have."""
    value = {
        "output_dir": str(run),
        "corpus": {"files": [str(text)], "heldout_fraction": 0.0} | corpus,
        "tokenizer": {"path": str(good_tokenizer())},
    }
    return recipe(value)


def copy_of(good: Path, folder: Path) -> Path:
    """A copy of a good folder, to be damaged."""
    return Path(shutil.copytree(good, folder / good.name))
