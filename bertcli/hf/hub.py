"""A model's id on the Hugging Face hub, `org/name` -> a local folder with its files."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import getproxies

from bertcli.errors import UserError
from bertcli.hf.sentence_transformers import SENTENCE_FILES
from bertcli.terminal import raw_stream, say, working
from bertcli.text.tokenizer_files import VOCABULARY_FILES

SECONDS = 10.0
"""How long the hub may take to connect, or to send more."""
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

    say(f"{name}: looking for it on the Hugging Face hub; Ctrl-C stops")
    try:
        with (
            _limited_waiting(),
            contextlib.redirect_stderr(raw_stream(sys.stderr)),
            working(lambda: "" if sys.stderr.isatty() else f"{name}: waiting for the hub; Ctrl-C stops"),
        ):
            # The progress bars need a carriage return.
            folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_SAFETENSORS]))
            if not any(path for pattern in _SAFETENSORS for path in folder.glob(pattern)):
                folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_PICKLES]))
    except MemoryError:
        raise
    except (
        Exception
    ) as error:  # of huggingface_hub and of its HTTP library: a proxy, a redirect, a bad address
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise UserError(
            f"{name}: no such local folder, and not available from the Hugging Face hub: {reason}.{_proxy()} "
            f"Give a folder; or download the model on a machine with a network (hf download {name} "
            f"--local-dir FOLDER), copy that folder here, and give it."
        ) from None
    return folder


def _proxy() -> str:
    """A sentence on the proxy that the environment names; its address may hold a password."""
    if not getproxies():
        return ""
    names = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"
    return f" The request goes through a proxy ({names}): are its address and its password right?"


@contextlib.contextmanager
def _limited_waiting() -> Iterator[None]:
    """A time limit for requests that have none: some of huggingface_hub would wait for ever."""
    from huggingface_hub import get_session

    def limit(request: Any) -> None:
        given = request.extensions.get("timeout", {})
        request.extensions["timeout"] = {
            each: min(SECONDS, given.get(each) or SECONDS) for each in ("connect", "read", "write", "pool")
        }

    session = get_session()
    hooks = session.event_hooks
    session.event_hooks = {**hooks, "request": [*hooks["request"], limit]}
    try:
        yield
    finally:
        session.event_hooks = hooks
