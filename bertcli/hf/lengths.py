"""The longest rows that a model can read, and the length of those that it was trained on."""

from __future__ import annotations

from pathlib import Path

from bertcli.errors import UserError
from bertcli.hf.config_file import read_architecture
from bertcli.text.json_file import read_json

TRAINED_LENGTH = "bertcli_trained_length"
"""The key of `config.json`; other libraries ignore it."""


def trained_length(folder: Path) -> int | None:
    """Tokens in the rows that a folder's model was pretrained on; None: unknown."""
    value = read_json(folder / "config.json").get(TRAINED_LENGTH)
    return value if isinstance(value, int) else None


def check_length(folder: Path, max_length: int, key: str) -> str | None:
    """A warning if rows of `max_length` tokens are longer than those that the model was trained on.

    `key`: the user's option or key, for messages. Raises `UserError` if the model cannot read such rows.
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
        f"{key}: {max_length} tokens, but {folder} was pretrained on rows of {trained}; later positions are "
        f"not trained yet"
    )
