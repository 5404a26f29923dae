"""The help of the program and of each command: quick, in groups, and whole on 80 columns."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.cli.main import COMMANDS, GROUPS

Bertcli = Callable[..., tuple[int, str, str]]


def test_help_imports_no_torch() -> None:
    program = (
        "import sys\n"
        "from bertcli.cli.main import COMMANDS, main\n"
        "heavy = {'torch', 'tokenizers', 'numpy', 'yaml', 'filelock'}\n"
        "for words in [(), *((name,) for name in COMMANDS)]:\n"
        "    sys.argv = ['bertcli', *words, '--help']\n"
        "    try:\n        main()\n"
        "    except SystemExit as stop:\n        assert not stop.code, words\n"
        "    assert not heavy & set(sys.modules), (words, heavy & set(sys.modules))\n"
        "    assert words or 'pydantic' not in sys.modules\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    first, *others = result.stdout.split("Usage: ")[1:]
    assert len(others) == len(COMMANDS)
    for name, shown in zip(COMMANDS, others, strict=True):
        assert name in first
        assert re.search(rf"^  Example: bertcli {name}|^bertcli tokenizer", shown, flags=re.MULTILINE)


def commands_of(shown: str) -> dict[str, str]:
    """Name -> sentence of the commands in a help, under all headings but that of the options."""
    sections = re.split(r"^(\w+):\n", shown, flags=re.MULTILINE)
    listed = [text for name, text in zip(sections[1::2], sections[2::2], strict=True) if name != "Options"]
    found = re.findall(r"^  (\S+) +(\S.*(?:\n {4,}\S.*)*)$", "\n".join(listed), flags=re.MULTILINE)
    return {name: " ".join(sentence.split()) for name, sentence in found}


@pytest.mark.parametrize("columns", ["80", "100"])
@pytest.mark.parametrize(("command", "number"), [((), len(COMMANDS)), (("bench",), 5), (("tokenizer",), 2)])
def test_each_command_is_listed_with_one_whole_sentence(
    run_bertcli: Bertcli,
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
    command: tuple[str, ...],
    number: int,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    _, shown, _ = run_bertcli(*command, "--help")
    sentences = commands_of(shown)
    assert len(sentences) == number
    for name, sentence in sentences.items():
        assert re.fullmatch(r"[A-Z][^.]*\.", sentence), (name, sentence)
        assert f" {sentence}\n" in shown  # on one line
    assert max(map(len, shown.splitlines())) <= 80


def test_the_commands_stand_under_what_they_are_for(run_bertcli: Bertcli) -> None:
    _, shown, _ = run_bertcli("--help")
    assert re.findall(r"^(\w+):$", shown, flags=re.MULTILINE) == ["Options", *GROUPS]
    train = shown.partition("Train:\n")[2].partition("\n\n")[0]
    assert list(commands_of(f"Train:\n{train}")) == list(GROUPS["Train"])


@pytest.mark.parametrize(
    ("command", "option", "heading"),
    [
        ("predict", "--min-probability", "Options"),
        ("predict", "--columns", "Input"),
        ("predict", "--json", "Output"),
        ("predict", "--batch-size", "Computation"),
        ("export", "--format", "Output"),
        ("estimate", "--device", "Options"),
    ],
)
def test_the_options_of_a_command_stand_under_what_they_are_for(
    run_bertcli: Bertcli, command: str, option: str, heading: str
) -> None:
    _, shown, _ = run_bertcli(command, "--help")
    section = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
    assert f"  {option} " in section


def test_a_help_has_no_line_that_a_terminal_breaks_and_no_range_without_an_end(run_bertcli: Bertcli) -> None:
    reference = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    for words in re.findall(r"^##+ `bertcli (.*)`$", reference, flags=re.MULTILINE):
        _, shown, _ = run_bertcli(*words.split(), "--help")
        assert max(map(len, shown.splitlines())) <= 80, words
        assert "1<=x<=1" not in shown
        assert "\x1b" not in shown


@pytest.mark.parametrize(
    "command", [(), ("pretrain",), ("bench",), ("bench", "step"), ("tokenizer", "train")]
)
def test_h_is_help(run_bertcli: Bertcli, command: tuple[str, ...]) -> None:
    short, long = (run_bertcli(*command, flag) for flag in ("-h", "--help"))
    assert short == long
    assert short[0] == 0
    assert short[1].startswith(f"Usage: {' '.join(('bertcli', *command))}")
