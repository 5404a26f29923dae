"""The longest rows that a model can read, and the length of those that it was trained on."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from bertcli.folders.config_file import read_architecture
from bertcli.model.architecture import Architecture
from bertcli.system.errors import UserError
from bertcli.system.formats import read_json_if_there
from bertcli.system.terminal import say

TRAINED = "bertcli_trained_length"
"""The key of `config.json` for `trained_length`, if the tokenizer declares another length."""
_NO_LENGTH = 1_000_000
"""Least number that is no length: transformers writes a huge one where a tokenizer has no length."""


def trained_length(folder: Path) -> int | None:
    """Tokens of the longest rows that a folder's model was trained on, from its `config.json`, else from
    `model_max_length` in its `tokenizer_config.json`; None if neither says it."""
    keys = read_json_if_there(folder / "config.json")
    declared = read_json_if_there(folder / "tokenizer_config.json").get("model_max_length")
    value = keys.get(TRAINED, declared)
    return value if type(value) is int and 0 < value < _NO_LENGTH else None


def length_after(source: Path | None, length: int) -> int | None:
    """`trained_length` after training on rows of `length` tokens; None: unknown.

    `source`: the folder that the training started from, which may know longer rows; None: there was none.
    """
    if source is None:
        return length
    before = trained_length(source)
    return None if before is None else max(before, length)


def untrained_positions(architecture: Architecture, length: int | None) -> Iterator[str]:
    """A line if a run on rows of `length` tokens (None: unknown) leaves learned positions untrained."""
    positions = architecture.usable_positions
    if architecture.position_table and length is not None and length < positions:
        yield (
            f"positions: the first {length:,} of {positions:,} are trained; if the model shall read longer "
            "rows, raise data.max_length"
        )


def changed_positions(before: Architecture, after: Architecture) -> Iterator[str]:
    """Lines on longer rows and another rotary base, for a run that goes on from a model of sizes `before`."""
    if after.usable_positions > (old := before.usable_positions):
        has_table = after.position_table or after.mask_decoder
        how = f"the later ones begin as copies of the first {old:,}" if has_table else "none is learned"
        yield f"positions: {old:,} -> {after.usable_positions:,}; {how}"
    if before.rotary_bases != after.rotary_bases and before.rotary_bases and after.rotary_bases:
        yield f"rotary base: {before.rotary_bases[0]:,.0f} -> {after.rotary_bases[0]:,.0f}"


def check_length(folder: Path, max_length: int, key: str) -> None:
    """Raise `UserError` if the model cannot read rows of `max_length` tokens; `key`: the user's option."""
    positions = read_architecture(folder / "config.json").usable_positions
    if max_length > positions:
        raise UserError(
            f"{key}: {max_length} tokens, but {folder} has {positions} positions; give at most {positions}"
        )


class LongRows:
    """Counter of rows, and of those that are longer than any that a folder's model was trained on."""

    def __init__(self, folder: Path):
        self._folder, self._trained = folder, trained_length(folder)
        self.rows = self.long = 0

    def count(self, lengths: Iterable[int]) -> None:
        """Add rows, by their numbers of tokens."""
        for length in lengths:
            self.rows += 1
            self.long += self._trained is not None and length > self._trained

    @property
    def line(self) -> str | None:
        """The warning about long rows; None if there are none."""
        if not self.long:
            return None
        return (
            f"{self.long:,} of {self.rows:,} rows are longer than {self._trained} tokens, the longest that "
            f"{self._folder} was trained on; its positions after them are not trained: go on pretraining it "
            "with a larger data.max_length, or give shorter texts"
        )

    def tell(self) -> None:
        """Print the line on standard error, if there is one."""
        if self.line is not None:
            say(f"warning: {self.line}")
