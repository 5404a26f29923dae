"""The blocks of a page of the documentation, and a reader who types them in the order of the page.

An HTML comment before a block says what a test must know and a reader must not:

    <!-- not run: WHY -->         the block is not run
    <!-- printed by: COMMAND -->  COMMAND prints this for people; `…` stands for anything
    <!-- said in: FILE -->        the program has these words; for what is too costly to bring about

One anywhere in a page, `<!-- begins with: runs/quickstart -->`, names the runs that the reader has already.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = ("sh", "python")
"""The languages of what a reader types."""
NO_CODE = ("", "yaml", "{toctree}")
"""What is read and not typed: printed lines and messages, a config or part of one, the list of pages."""
_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- ([a-z ]+): ([^>]*) -->\n\s*\Z")
_BEGINS = re.compile(r"<!-- begins with: (.*?) -->")
_LINE_END = re.compile(r'"\s*\n\s*f?"')
"""Between the parts of a text that is written on several lines of code."""
_NAMED = re.compile(r"# ([\w-]+\.yaml)\n")

Bertcli = Callable[..., tuple[int, str, str]]
"""Exit code, standard output and standard error of a command line."""


@dataclass(frozen=True)
class Block:
    """What stands between two fences.

    Attributes:
        line: of the first fence, from 1.
        note: the key and the value of the comment before it; two empty texts: there is none.
    """

    line: int
    language: str
    text: str
    note: tuple[str, str]

    @property
    def is_command(self) -> bool:
        """Whether a reader types it."""
        return self.language in COMMANDS

    @property
    def is_run(self) -> bool:
        """Whether a test types it too."""
        return self.is_command and self.note[0] != "not run"

    def check_in(self, text: str) -> None:
        """The words of the block stand in this text, in their order."""
        missing, rest = [], text
        for part in filter(None, self.text.strip("\n").split("…")):
            if part not in rest:
                missing.append(part)
            rest = rest.partition(part)[2] or rest
        assert not missing, f"line {self.line}: {missing} not in {text[-2000:]}"


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        comment = _COMMENT.search(before)
        note = (comment[1], " ".join(comment[2].split())) if comment else ("", "")
        found.append(Block(before.count("\n") + 1, match[1], match[2], note))
    return found


def begins_with(page: Path) -> list[str]:
    """The runs that a reader of the page has already."""
    return [name for names in _BEGINS.findall(page.read_text(encoding="utf-8")) for name in names.split()]


def command_lines(text: str) -> Iterator[str]:
    """The commands of a block; a line that ends in a backslash continues."""
    for line in text.replace("\\\n", " ").splitlines():
        if shlex.split(line, comments=True):
            yield line


@dataclass
class Reader:
    """Types the blocks of one page in the current folder.

    Attributes:
        names: what the Python blocks of the page have defined.
    """

    bertcli: Bertcli
    names: dict[str, Any] = field(default_factory=dict)

    def read(self, block: Block) -> None:
        """Do what a block says; an `AssertionError` shows what failed."""
        key, value = block.note
        if key == "printed by":
            block.check_in(self._type(value)[2])
        elif key == "said in":
            block.check_in(_LINE_END.sub("", (ROOT / value).read_text(encoding="utf-8")))
        elif block.language == "yaml":
            if named := _NAMED.match(block.text):
                Path(named[1]).write_text(block.text, encoding="utf-8")
        elif block.is_run and block.language == "python":
            code = compile(block.text, f"line {block.line}", "exec", dont_inherit=True)
            exec(code, self.names)
        elif block.is_run:
            for line in command_lines(block.text):
                code, out, err = self._type(line)
                assert code == 0, f"{line}\n{out}{err}"

    def _type(self, line: str) -> tuple[int, str, str]:
        """`bertcli` in this process, which is faster than a new one; any other program in the shell."""
        words = shlex.split(line, comments=True)
        if words[0] != "bertcli":
            done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr
        file = words[-1] if words[-2] == ">" else None
        code, out, err = self.bertcli(*(words[1:-2] if file else words[1:]))
        if file is not None:
            Path(file).write_text(out, encoding="utf-8")
        return code, out, err
