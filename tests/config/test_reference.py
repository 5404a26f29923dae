"""Page, command and JSON schema name the keys of the config classes, all of them and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.keys import CONFIGS, json_schema, keys_of
from bertcli.config.load import check_config
from bertcli.config.yaml_text import Block, Line, parse_yaml
from bertcli.samples import CONFIGS as BUNDLED
from tests.config.json_schema import problems
from tests.config.keys import REQUIRED, class_keys

ROOT = Path(__file__).parents[2]


def reference_keys(section: Block, prefix: str = "") -> Iterator[tuple[str, Line]]:
    for each in section.lines:
        if isinstance(each, Line):
            yield f"{prefix}{each.name}", each
        else:
            yield from reference_keys(each, f"{prefix}{each.name}.")


def schema_keys(schema: dict[str, Any], root: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, field in schema["properties"].items():
        kinds = (field, field.get("items", {}), *field.get("anyOf", []))
        references = [each["$ref"] for each in kinds if "$ref" in each]
        if references:
            inner = root["$defs"][references[0].rpartition("/")[2]]
            yield from schema_keys(inner, root, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


@pytest.fixture(params=list(CONFIGS))
def command(request: pytest.FixtureRequest) -> str:
    return request.param


def test_each_key_has_a_meaning(command: str) -> None:
    assert [name for name, key in reference_keys(keys_of(CONFIGS[command])) if not key.above] == []


def test_reference_and_schema_have_all_keys_of_the_classes(command: str) -> None:
    own = list(class_keys(CONFIGS[command]))
    schema = json_schema(CONFIGS[command])
    assert len(own) > 40
    assert sorted(dict(reference_keys(keys_of(CONFIGS[command])))) == sorted(own)
    assert sorted(schema_keys(schema, schema)) == sorted(own)


def test_the_page_has_all_keys(command: str) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    own = page.split(f"## `bertcli {command}`")[1].split("\n## ")[0]
    named = [line.split("`")[1] for line in own.splitlines() if line.startswith("| `")]
    assert sorted(named) == sorted(class_keys(CONFIGS[command]))


def test_the_default_config_fits_the_schema(command: str) -> None:
    schema = json_schema(CONFIGS[command])
    defaults = check_config(CONFIGS[command], REQUIRED[command], "").model_dump(mode="json")
    assert list(problems(defaults, schema, schema)) == []


@pytest.mark.parametrize("name", BUNDLED)
def test_the_bundled_configs_fit_the_schema(name: str) -> None:
    path = BUNDLED[name]
    value = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    schema = json_schema(CONFIGS["pretrain" if "corpus" in value else "finetune"])
    assert list(problems(value, schema, schema)) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"tranining": {}}, ".tranining: is unknown"),
        ({"data": {"max_length": 5}}, ".data.max_length: 5 is out of range"),
        ({"training": {"schedule": "steps"}}, ".training.schedule: 'steps' is none of"),
        ({"training": {"steps": "many"}}, ".training.steps: 'many' is none of"),
        ({"corpus": {}}, ".corpus.files: is missing"),
    ],
)
def test_the_schema_finds_what_is_wrong(wrong: dict[str, Any], problem: str) -> None:
    schema = json_schema(CONFIGS["pretrain"])
    found = list(problems(REQUIRED["pretrain"] | wrong, schema, schema))
    assert len(found) == 1
    assert found[0].startswith(problem)
