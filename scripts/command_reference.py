"""Every command with its arguments and options: docs/commands.md, from the command line's own help.

    python scripts/command_reference.py     # writes it

The texts stand in `bertcli/cli/`; `tests/scripts/test_command_reference.py`
compares the file with what this gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from bertcli.cli.main import PROGRAM, app
from bertcli.cli.options import help_records

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
HEAD = """# Commands

Every command with its arguments and options, as `bertcli COMMAND --help` prints them. Written by
`python scripts/command_reference.py`; the text stands in `bertcli/cli/`.

Data goes to standard output, everything else to standard error. Bad input is one message and exit code 2.
`bertcli --install-completion` teaches your shell the commands and options.
"""


def page() -> str:
    """The whole document."""
    group: Any = typer.main.get_command(app)
    with group.make_context(PROGRAM, [], resilient_parsing=True) as context:
        return "\n".join([HEAD, *sections(group, context, "##")])


def sections(group: Any, context: Any, mark: str) -> Iterator[str]:
    """A section for each command of a group, and for those of the groups in it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        with type(context)(command, info_name=name, parent=context) as inner:
            yield f"{mark} `{inner.command_path}`\n"
            yield from (f"{_prose(paragraph)}\n" for paragraph in command.help.split("\n\n"))
            if hasattr(command, "list_commands"):
                yield from sections(command, inner, f"{mark}#")
            else:
                yield "| argument or option | meaning |\n|---|---|"
                for heading, records in help_records(command, inner).items():
                    if heading not in ("Arguments", "Options"):
                        yield f"| *{heading}* | |"
                    yield from (_row(record) for record in records if "--help" not in record[0])
                yield ""


def _prose(paragraph: str) -> str:
    text = " ".join(paragraph.split())
    start, example, command = text.partition("Example: ")
    return f"{_escaped(start)}Example: `{command}`" if example else _escaped(text)


def _row(record: tuple[str, str]) -> str:
    """Of a term, `--input FILE`, and its help, which ends with the default: `[default: auto]`."""
    term, text = record
    return f"| `{term.replace('|', ', ')}` | {_escaped(text)} |"


def _escaped(text: str) -> str:
    """Without the signs that Markdown would take for its own."""
    for sign in "<|*":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
