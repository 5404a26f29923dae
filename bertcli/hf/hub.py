"""A model's id on the Hugging Face hub, `org/name` -> a local folder with its files."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

from bertcli.errors import UserError
from bertcli.hf.sentence_transformers import SENTENCE_FILES
from bertcli.terminal import raw_stream
from bertcli.text.tokenizer_files import VOCABULARY_FILES

_ID = re.compile(r"[\w.-]+/[\w.-]+")
_SMALL_FILES = (
    *("config.json", "tokenizer_config.json", *VOCABULARY_FILES, "merges.txt"),
    *("added_tokens.json", "special_tokens_map.json"),  # older folders register tokens there
    *SENTENCE_FILES,
)
_SAFETENSORS = ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors")
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin")


def is_hub_id(name: str) -> bool:
    """Whether this can be a model on the hub: `word/word`, where the first is not a local folder."""
    return _ID.fullmatch(name) is not None and not Path(name).parent.exists()


def download(name: str) -> Path:
    """Download a model to the local cache, which also works without a network once it is there.

    Only sizes, tokenizer and weights: safetensors, or the older format if there are none.
    Raises `UserError` if the hub has no such model, or cannot be reached and the cache lacks it.
    """
    from huggingface_hub import snapshot_download

    try:
        with contextlib.redirect_stderr(raw_stream(sys.stderr)):  # its progress bars need a carriage return
            folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_SAFETENSORS]))
            if not any(path for pattern in _SAFETENSORS for path in folder.glob(pattern)):
                folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_PICKLES]))
    except (OSError, ValueError) as error:  # the base classes of all errors of huggingface_hub
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise UserError(
            f"{name}: no such local folder, and not available from the Hugging Face hub: {reason}. "
            f"Give a folder; or download the model on a machine with a network (hf download {name} "
            f"--local-dir FOLDER), copy that folder here, and give it."
        ) from None
    return folder
