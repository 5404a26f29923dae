"""Calls of the Python API: checked arguments, and one kind of error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

import bertcli

TEXT = "A [MASK]."
RUN: dict[str, Any] = {"corpus": {}}
NO_USER = "output_dir: '~nobody-here/x' begins with ~ and a name, and no user has this name"
api: Any = bertcli  # whose arguments are wrong by intent
WRONG: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "model: None": (lambda _, f: api.load(None), "model: expected a path; got None"),
    "model: empty": (lambda _, f: api.load(""), "model: '' cannot be used as a path: it is empty"),
    "model: elsewhere": (lambda _, f: api.load("s3://a/b"), "s3://a/b: a path on this machine was expected"),
    "model: long": (lambda _, f: api.load("x" * 5_000), "model: 'x.*file name too long"),
    "model: nul": (lambda _, f: api.load("a\0b"), "model: .*null"),
    "device: number": (lambda _, f: api.load(f, device=0), "device: expected a text"),
    "device: unknown": (lambda _, f: api.load(f, device="tpu"), "device: 'tpu'"),
    "device: surrogate": (lambda _, f: api.load(f, device="\ud800"), "device: .*surrogate"),
    "precision: fp8": (lambda _, f: api.load(f, precision="fp8"), "precision: expected 'fp32', 'bf16'"),
    "top_k: 0": (lambda _, f: api.load(f).fill_mask(TEXT, 0), "top_k: expected a whole number"),
    "top_k: true": (lambda _, f: api.load(f).fill_mask(TEXT, True), "top_k: .*got True"),
    "top_k: half": (lambda _, f: api.load(f).fill_mask(TEXT, 1.5), "top_k: .*got 1.5"),
    "fill: None": (lambda _, f: api.load(f).fill_mask(None), "texts: expected a text, or a list"),
    "fill: surrogate": (lambda _, f: api.load(f).fill_mask([TEXT, "\ud800"]), "text 2: character 1 "),
    "pooling: name": (lambda _, f: api.load(f).embed(TEXT, "avg"), "pooling: .*got 'avg'"),
    "normalize: one": (lambda _, f: api.load(f).embed(TEXT, normalize=1), "normalize: .*got 1"),
    "embed: surrogate": (lambda _, f: api.load(f).embed("ab\ud800"), "text 1: character 3 "),
    "embed: keys": (lambda _, f: api.load(f).embed({"a": "b"}), "texts: .*type dict"),
    "embed: a frame": (lambda _, f: api.load(f).embed(Mock(columns=["a"])), "texts: .*type Mock"),
    "embed: numbers": (lambda _, f: api.load(f).embed([TEXT, float("nan")]), "text 2: .*type float"),
    "predict: None": (lambda m, _: api.load(m / "multi-label").predict([None]), "row 1: .*got None"),
    "predict: in row": (lambda m, _: api.load(m / "choices").predict([("a", "b", 3)]), "row 1, text 3: "),
    "predict: half": (lambda m, _: api.load(m / "classification").predict("\ud800"), "row 1: character 1"),
    "attention: None": (lambda _, f: api.load(f).attention(None), "text: expected a text"),
    "attention: surrogate": (lambda _, f: api.load(f).attention(("a", "\udfff")), "text, text 2: "),
    "config: None": (lambda _, f: api.pretrain(None), "config: expected a path; got None"),
    "config: keys": (lambda _, f: api.pretrain({1: 2}), "the config: "),
    "config: no user": (lambda _, f: api.pretrain(RUN | {"output_dir": "~nobody-here/x"}), NO_USER),
    "config: half": (
        lambda _, f: api.pretrain(RUN | {"output_dir": "\ud800"}),
        "output_dir: .*surrogate pair",
    ),
    "config: nul": (lambda _, f: api.pretrain(RUN | {"output_dir": "a\0b"}), "output_dir: .*NUL"),
    "resume": (lambda _, f: api.pretrain({}, resume="no"), "resume: expected False or True; got 'no'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named(models: Path, folder: Path, name: str) -> None:
    wrong, message = WRONG[name]
    with pytest.raises(bertcli.UserError, match=f"(?s)^{message}|{message}"):
        wrong(models, folder)


FUNCTIONS: dict[str, Callable[[Path, Path, Any], Any]] = {
    "load": lambda _, f, wrong: api.load(wrong),
    "load: device": lambda _, f, wrong: api.load(f, device=wrong),
    "load: precision": lambda _, f, wrong: api.load(f, precision=wrong),
    "fill_mask": lambda _, f, wrong: api.load(f).fill_mask(wrong),
    "fill_mask: top_k": lambda _, f, wrong: api.load(f).fill_mask(TEXT, wrong),
    "embed": lambda _, f, wrong: api.load(f).embed(wrong),
    "embed: in list": lambda _, f, wrong: api.load(f).embed([wrong]),
    "embed: pooling": lambda _, f, wrong: api.load(f).embed(TEXT, wrong if wrong is not None else 1),
    "embed: normalize": lambda _, f, wrong: api.load(f).embed(TEXT, normalize=wrong or 1),
    "predict": lambda m, _, wrong: api.load(m / "tokens").predict(wrong),
    "predict: row": lambda m, _, wrong: api.load(m / "multi-label").predict([wrong]),
    "predict: in row": lambda m, _, wrong: api.load(m / "choices").predict([(wrong, "a", "b")]),
    "attention": lambda _, f, wrong: api.load(f).attention(wrong),
    "pretrain": lambda _, f, wrong: api.pretrain(wrong),
    "pretrain: output_dir": lambda _, f, wrong: api.pretrain({"output_dir": wrong, "corpus": {"files": "x"}}),
    "pretrain: corpus": lambda _, f, wrong: api.pretrain({"output_dir": "run", "corpus": {"files": wrong}}),
    "finetune": lambda _, f, wrong: api.finetune(wrong),
    "finetune: model": lambda _, f, wrong: api.finetune(TASK | {"model": wrong}),
    "finetune: train": lambda _, f, wrong: api.finetune(TASK | {"task": TASK["task"] | {"train": wrong}}),
}
TASK: dict[str, Any] = {
    **{"output_dir": "run", "model": "m"},
    "task": {"type": "classification", "train": "x", "text": "a", "label": "b"},
}
ITSELF: list[Any] = []
ITSELF.append(ITSELF)
OBJECTS: list[Any] = [
    *(None, 0, -1, 1.5, float("nan"), 1j, b"a", bytearray(b"a"), memoryview(b"a"), object(), str, len),
    *({"a": 1}, {"a"}, [None], [[]], [[["a"]]], ITSELF, "\ud800", Exception("a"), torch.tensor(1.5)),
    *(np.array("a"), np.array(0), np.array([1.5]), np.float32(1), np.bool_(True), range(3)),
    Mock(columns=["a"]),
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_object_of_another_kind_is_a_user_error(
    models: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in [*OBJECTS, (None for _ in "a")]:
        with pytest.raises(bertcli.UserError):
            FUNCTIONS[name](models, folder, wrong)
    assert not list(tmp_path.iterdir())


class PanicException(BaseException):
    """As pyo3 names it, in no module."""


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (PanicException("index out of bounds"), bertcli.UserError),
        (Exception("tokenizers raises it bare"), bertcli.UserError),
        (SafetensorError("damaged"), bertcli.UserError),
        (FileNotFoundError(2, "No such file", "x"), bertcli.UserError),
        (torch.OutOfMemoryError("out of memory"), bertcli.UserError),
        (RuntimeError("a bug"), RuntimeError),
        (TypeError("a bug"), TypeError),
        (Empty(), Empty),
    ],
)
def test_no_error_of_another_library_comes_out(
    monkeypatch: pytest.MonkeyPatch, folder: Path, raised: BaseException, expected: type[BaseException]
) -> None:
    monkeypatch.setattr("bertcli.inference.fill_mask.fill_masks", Mock(side_effect=raised))
    with pytest.raises(expected) as caught:
        bertcli.load(folder).fill_mask(TEXT)
    assert type(caught.value) is expected


def test_another_ranks_error_is_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, error in ((2, bertcli.UserError), (128 + 15, KeyboardInterrupt)):
        monkeypatch.setattr("bertcli.training.train.run_finetuning", Mock(side_effect=SystemExit(code)))
        with pytest.raises(error):
            bertcli.finetune({})
