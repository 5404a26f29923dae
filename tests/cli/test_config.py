from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertcli.config.keys import CONFIGS, json_schema, keys_of
from bertcli.config.load import check_config, parse_yaml
from bertcli.config.yaml_text import Block
from tests.config.keys import REQUIRED, class_keys, yaml_keys


@pytest.fixture(params=list(CONFIGS))
def command(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_command_has_all_keys_and_is_the_default_config_once_filled(command: str, run_bertcli) -> None:
    code, printed, _ = run_bertcli("config", command)
    assert code == 0
    value = parse_yaml(printed, "printed")
    sections = [each for each in keys_of(CONFIGS[command]).lines if isinstance(each, Block)]
    optional = [section.name for section in sections if section.is_out]
    assert optional == ["distillation"]
    assert "# distillation:\n#   # " in printed
    distillation, sources = (
        {key for key in class_keys(CONFIGS[command]) if key.startswith(section)}
        for section in ("distillation.", "corpus.sources.")
    )
    assert sorted(yaml_keys(value)) == sorted(set(class_keys(CONFIGS[command])) - distillation - sources)
    assert all(f"#   {key.partition('.')[2]}:" in printed for key in distillation)
    filled = value | {
        name: value[name] | given if isinstance(given, dict) else given
        for name, given in REQUIRED[command].items()
    }
    assert check_config(CONFIGS[command], filled, "") == check_config(CONFIGS[command], REQUIRED[command], "")


def test_required_keys_are_empty_and_the_config_is_refused_with_their_names(
    command: str, run_bertcli, tmp_path: Path
) -> None:
    _, printed, _ = run_bertcli("config", command)
    (tmp_path / "c.yaml").write_text(printed, encoding="utf-8")
    code, _, err = run_bertcli(command, tmp_path / "c.yaml")
    assert code == 2
    for key in yaml_keys(REQUIRED[command]):
        assert f"  {key}: " in err


def test_the_schema_of_the_command_is_that_of_the_classes(command: str, run_bertcli) -> None:
    code, printed, _ = run_bertcli("config", command, "--schema")
    assert code == 0
    schema = json.loads(printed)
    assert schema == json_schema(CONFIGS[command])
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False


def test_another_kind_of_config_is_refused(run_bertcli) -> None:
    code, _, err = run_bertcli("config", "predict")
    assert code == 2
    assert "'predict' is not one of 'pretrain', 'finetune'" in err
