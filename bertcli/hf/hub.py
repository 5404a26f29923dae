"""A model's id on the Hugging Face hub, `org/name` -> a folder with the files that are read here."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

from bertcli.errors import UserError
from bertcli.hf.sentence_transformers import SENTENCE_FILES
from bertcli.terminal import raw_stream

_ID = re.compile(r"[\w.-]+/[\w.-]+")
_SMALL_FILES = (
    *("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"),
    *("added_tokens.json", "special_tokens_map.json"),  # the tokens that older folders register
    *SENTENCE_FILES,
)
_SAFETENSORS = ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors")
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin")


def is_hub_id(name: str) -> bool:
    """Whether this can be a model on the hub: two words, of which the first is no folder here."""
    return _ID.fullmatch(name) is not None and not Path(name).parent.exists()


def download(name: str) -> Path:
    """Bring a model of the hub into the local cache, from where it comes without a network as well.

    Only sizes, tokenizer and weights: safetensors, and the older format where there are none.
    Raises `UserError` where the hub has no such model, or cannot be reached and the cache lacks it.
    """
    from huggingface_hub import snapshot_download

    try:
        with contextlib.redirect_stderr(raw_stream(sys.stderr)):  # its bars return to the start of a line
            folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_SAFETENSORS]))
            if not any(path for pattern in _SAFETENSORS for path in folder.glob(pattern)):
                folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_PICKLES]))
    except (OSError, ValueError) as error:  # what every error of the hub's library is one of
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise UserError(
            f"{name}: no such folder here, and no model from the Hugging Face hub: {reason}. "
            f"Name a folder; or fetch the model where there is a network (hf download {name} "
            f"--local-dir FOLDER), bring that folder here, and name it."
        ) from None
    return folder
