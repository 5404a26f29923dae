"""The keys of both configs with values, defaults and meanings: docs/configuration.md, from the code.

    python scripts/config_reference.py     # writes it

The text of a key is the string under its field in bertcli/config/; `tests/scripts/test_config_reference.py`
compares the file with what this gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertcli.config.keys import CONFIGS, keys_of
from bertcli.config.yaml_text import Block, Line, scalar

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
HEAD = """# Configuration

Every key of a config file, with its values, its default and its meaning. Written by
`python scripts/config_reference.py`; the text stands in `bertcli/config/`.
`--set training.steps=200` overrides a key. `auto` is decided at the start of a run, which says what it is.

`bertcli init FILES` writes a config for your files, and `bertcli config pretrain` (or `finetune`) prints one
with every key. For an editor that reads JSON schemas (VS Code with the YAML extension, Neovim, JetBrains):

```sh
bertcli config pretrain --schema > pretrain.schema.json
```

and as the first line of the config beside it:

```yaml
# yaml-language-server: $schema=pretrain.schema.json
```

The editor then completes keys, shows their meanings, and marks what is wrong.
"""


def page() -> str:
    """The whole document."""
    parts = [HEAD]
    for command, root in CONFIGS.items():
        parts.append(f"## `bertcli {command}`\n")
        parts += tables(keys_of(root), "")
    return "\n".join(parts)


def tables(section: Block, prefix: str) -> Iterator[str]:
    """The table of a section's own keys, then those of the sections in it."""
    if prefix:
        yield f"### {prefix.rstrip('.')}\n"
    yield f"{section.above}\n"
    yield "| key | values | default | meaning |\n|---|---|---|---|"
    for key in section.lines:
        if isinstance(key, Line):
            meaning, values = key.above, key.beside
            default = "**required**" if key.is_required else f"`{scalar(key.value)}`"
            yield f"| `{prefix}{key.name}` | {values} | {default} | {meaning} |"
    yield ""
    for inner in section.lines:
        if isinstance(inner, Block):
            yield from tables(inner, f"{prefix}{inner.name}.")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
