"""What a section refuses: numbers that are written in another way or out of bounds, and paths too deep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_origin

import pytest
from pydantic import BaseModel

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, load_config
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import kinds_of, section_in
from bertcli.system.errors import UserError
from tests.config.files import MINIMAL, write


def numeric_keys(schema: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The dotted keys that take a number."""
    for name, field in schema.model_fields.items():
        section = section_in(field.annotation)
        if get_origin(field.annotation) is tuple and section is not None:
            continue  # a list of sections, whose keys `--set` cannot name
        if section is not None:
            yield from numeric_keys(section, f"{prefix}{name}.")
        elif kinds_of(field.annotation) & {int, float} and str not in kinds_of(field.annotation):
            yield f"{prefix}{name}"


PRETRAIN = MINIMAL + "distillation: {teacher: x}\n"
FINETUNE = """
output_dir: run
model: m
task: {type: classification, train: a.csv, text: a, label: b}
distillation: {teacher: x}
"""
HARMLESS = {
    "seed": ("1e18", "1000000001"),
    "task.null_threshold": ("-1",),
    "training.max_grad_norm": ("9223372036854775808", "1e18", "1000000001"),
}


KEYS = [
    *((PretrainConfig, PRETRAIN, key) for key in numeric_keys(PretrainConfig)),
    *((FinetuneConfig, FINETUNE, key) for key in numeric_keys(FinetuneConfig)),
]
"""Schema, a config of it, and a key that takes a number: all that there are."""


@pytest.mark.parametrize(
    "number",
    ["0123", "1:30", "1_000", "0x10", "0o17", "'7'", "2024-01-01", ".inf", "on", "true", "9" * 5_000],
)
def test_a_number_that_is_written_in_another_way_is_refused(tmp_path: Path, number: str) -> None:
    some = [number, f"[{number}, 2]"]
    for schema, text, key in KEYS:
        for each in some if key in ("training.batch_size", "seeds") else some[:1]:
            with pytest.raises(
                UserError, match=f"{key}.*: expected a number( or auto)?, got (the text|true)"
            ):
                load_config(schema, write(tmp_path, text), [f"{key}={each}"])


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "1e18", "1000000001", "-1", ".nan", ".inf", "1e999"]
)
@pytest.mark.parametrize(
    ("schema", "text", "key"),
    KEYS,
)
def test_a_number_out_of_bounds_is_refused_by_name(
    tmp_path: Path, schema: type[BaseModel], text: str, key: str, number: str
) -> None:
    if number in HARMLESS.get(key, ()):
        return
    with pytest.raises(UserError, match=rf"{key}\b"):
        load_config(schema, write(tmp_path, text), [f"{key}={number}"])


@pytest.mark.parametrize("weight", ["0123", "1:30", "true", "'7'", ".inf", "0", "-1", "1e9", "[1]", "null"])
def test_a_weight_of_a_class_is_a_number(tmp_path: Path, weight: str) -> None:
    with pytest.raises(UserError, match=r"task\.class_weights"):
        load_config(FinetuneConfig, write(tmp_path, FINETUNE), [f"task.class_weights={{a: {weight}}}"])


def test_a_path_is_no_deeper_than_python_can_go(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="output_dir: the path leads through 1,500 folders; at most 500"):
        load_config(FinetuneConfig, write(tmp_path, FINETUNE), [f"output_dir={'a/' * 1500}b"])


def test_truth_values_are_no_seeds(tmp_path: Path) -> None:
    task = {"type": "classification", "train": "t", "text": "a", "label": "b"}
    with pytest.raises(UserError, match="seeds: expected a number, got true"):
        check_config(FinetuneConfig, {"output_dir": "r", "model": "m", "task": task, "seeds": [True, 2]}, "")
