from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertcli.config.keys import CONFIGS, json_schema, keys_of
from bertcli.config.load import check_config
from bertcli.config.yaml_text import Block, parse_yaml
from bertcli.samples import CONFIGS as BUNDLED
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
    assert (code, err) == (
        2,
        f"error: predict: give pretrain or finetune, or a bundled config: {', '.join(BUNDLED)}\n",
    )


def test_a_schema_is_that_of_a_command(run_bertcli) -> None:
    for name in ([], ["quickstart"]):
        code, _, err = run_bertcli("config", *name, "--schema")
        assert (code, err) == (2, f"error: {[*name, '--schema'][0]}: give pretrain or finetune\n")


def test_the_bundled_configs_are_listed_each_with_what_it_does(run_bertcli) -> None:
    code, printed, _ = run_bertcli("config")
    assert code == 0
    assert [line.split(maxsplit=1)[0] for line in printed.splitlines()] == list(BUNDLED)
    assert "\nspam                 Tells spam from wanted messages," in printed


def test_a_bundled_config_is_printed_as_it_is(run_bertcli) -> None:
    code, printed, _ = run_bertcli("config", "families/electra")
    assert (code, printed) == (0, BUNDLED["families/electra"].read_text(encoding="utf-8"))
