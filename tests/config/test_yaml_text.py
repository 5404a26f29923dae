from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, load_config, save_config
from bertcli.config.yaml_text import parse_yaml, scalar, yaml_text

TRAPS = (
    *("1e-3", "007", "08", "+5", ".5e1", "1_000", "yes", "no", "NO", "null", "~", "true", "2024-01-01"),
    *("1:30", "@x", "1", "-", "?", "", " ", "a: b", "a #b", "#a", "a:", "- a", "[a", "{a", "*a", "&a", "!a"),
    *("%a", "|", ">", "`a", "'", '"', "\\", "---", "...", "a...", "=", "<<", "a\nb", "a\n", "\ta"),
    *("\u2028", "\xa0", "\xa00"),
)


def with_traps(test):
    for trap in TRAPS:
        test = example(trap)(test)
    return test


@with_traps
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_back_as_it_was(text: str) -> None:
    value = {"a": {"x": text, "y": [text, "z"]}, text: 1}
    assert yaml.safe_load(yaml_text(value)) == value
    assert yaml.safe_load(yaml_text(value, flow=None)) == value
    line = scalar(text)
    assert len(line.splitlines()) == 1
    assert yaml.safe_load(f"x:\n  y: {line}  # a comment\n") == {"x": {"y": text}}
    assert yaml.safe_load(f"x: {scalar([text, text])}") == {"x": [text, text]}
    if "\0" not in text:  # which no config may hold
        assert parse_yaml(f"x: {line}  # a comment", "") == {"x": text}


@pytest.mark.parametrize("value", [5.0e-5, 1e20, None, True, 0, [0.8, 0.1], {"a b": 1.0}, ["#1 String"]])
def test_values_that_are_no_text_are_read_back_as_they_were(value: object) -> None:
    assert parse_yaml(f"x: {scalar(value)}  # a comment", "") == {"x": value}
    assert yaml.safe_load(yaml_text({"x": value})) == {"x": value}


@pytest.mark.parametrize("name", ["1e-3", "08", "2024-01-01", "yes"])
def test_a_saved_config_keeps_the_names_of_columns_and_labels(tmp_path: Path, name: str) -> None:
    task = {"type": "classification", "train": name, "text": name, "label": name, "positive_label": name}
    config = check_config(FinetuneConfig, {"output_dir": "run", "model": name, "task": task}, "test")
    save_config(config, tmp_path / "config.yaml")
    assert load_config(FinetuneConfig, tmp_path / "config.yaml") == config
