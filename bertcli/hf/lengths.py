"""How long the rows are that a model can read, and those that it was trained on."""

from __future__ import annotations

from pathlib import Path

from bertcli.errors import UserError
from bertcli.hf.config_file import read_architecture
from bertcli.text.json_file import read_json

TRAINED_LENGTH = "bertcli_trained_length"
"""The key of `config.json`; other libraries pass over it."""


def trained_length(folder: Path) -> int | None:
    """The tokens in a row on which a folder's model was pretrained; None: the folder does not say."""
    value = read_json(folder / "config.json").get(TRAINED_LENGTH)
    return value if isinstance(value, int) else None


def check_length(folder: Path, max_length: int, key: str) -> str | None:
    """A warning where rows of `max_length` tokens are longer than those the model was trained on.

    `key` is how the user gave the length, for the message. Raises `UserError` where the model cannot read
    such rows at all.
    """
    positions = read_architecture(folder / "config.json").usable_positions
    if max_length > positions:
        raise UserError(
            f"{key}: {max_length} tokens, but {folder} has {positions} positions; give at most {positions}"
        )
    trained = trained_length(folder)
    if trained is None or max_length <= trained:
        return None
    return (
        f"{key}: {max_length} tokens, but {folder} was pretrained on rows of {trained}; the positions beyond "
        f"it have learned nothing yet"
    )
