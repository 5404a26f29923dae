"""`bertcli config pretrain|finetune`: every key of a config, as a YAML to start from, or as a JSON schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from bertcli.config.commented import Block, Line
    from bertcli.config.reference import Keys


def config(
    kind: Annotated[
        Literal["pretrain", "finetune"], typer.Argument(metavar="pretrain|finetune", help="Of which command.")
    ],
    schema: Annotated[
        bool, typer.Option("--schema", help="A JSON schema, with which editors complete and check a config.")
    ] = False,
) -> None:
    """Print every key of a config with its default and its meaning.

    The YAML is a config: give the required keys a value, and change or delete the others.

    Example: bertcli config pretrain > mine.yaml
    """
    from bertcli.config.commented import commented_yaml
    from bertcli.config.reference import CONFIGS, json_schema, keys_of

    if schema:
        print(json.dumps(json_schema(CONFIGS[kind]), indent=2, ensure_ascii=False))
        return
    root = keys_of(CONFIGS[kind])
    head = f"{root.meaning} Every key with its default; the required ones are empty."
    print(commented_yaml(_lines(root), head), end="")


def _lines(section: Keys) -> list[Line | Block]:
    """A section that is null by default is written as a comment."""
    from bertcli.config.commented import Block, Line

    keys: list[Line | Block] = [
        Line(
            key.name,
            key.default,
            above=key.meaning,
            beside=f"required: {key.values}" if key.is_required else key.values,
            is_empty=key.is_required,
        )
        for key in section.keys
    ]
    inner = [
        Block(each.name, _lines(each), above=each.meaning, is_out=each.is_optional)
        for each in section.sections
    ]
    return [*keys, *inner]
