"""What a token store says of itself: where it came from, by which options, and what is in it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bertcli.errors import UserError

FORMAT_VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class SourceRecord:
    """A corpus file as it was when it was read."""

    name: str
    size: int
    """Bytes on disk."""
    mtime_ns: int
    sha256: str


@dataclass(frozen=True)
class SideCounts:
    """What one side of a store, `train` or `heldout`, holds."""

    documents: int = 0
    one_sentence_documents: int = 0
    """They give no true sentence pair."""
    sentences: int = 0
    tokens: int = 0
    """Special tokens are not stored, and not counted."""
    unk_tokens: int = 0
    words: int = 0
    """Separated by white space."""
    bytes: int = 0
    """Of the text, in UTF-8."""


@dataclass(frozen=True)
class Manifest:
    """`manifest.json`, written last: a folder without it is no store."""

    vocab_size: int
    tokenizer_hash: str
    options: dict[str, Any]
    """What shapes the store: the `corpus` section less `store`, and the tokenizer's choice."""
    sources: tuple[SourceRecord, ...]
    arrays: dict[str, int]
    """File under the store's folder -> its size in bytes."""
    train: SideCounts
    heldout: SideCounts
    dropped_documents: int
    """No sentence of theirs gave a token."""
    dropped_sentences: int
    unigram_entropy: float
    """Of the training tokens, in nats a token: the loss of a model that knows their frequencies alone."""
    version: int = FORMAT_VERSION

    @property
    def unk_rate(self) -> float:
        """[UNK] among all tokens, both sides."""
        return (self.train.unk_tokens + self.heldout.unk_tokens) / max(1, self._tokens)

    @property
    def tokens_per_word(self) -> float:
        """Tokens to a word separated by white space, both sides."""
        return self._tokens / max(1, self.train.words + self.heldout.words)

    @property
    def _tokens(self) -> int:
        return self.train.tokens + self.heldout.tokens


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json`; the same manifest gives the same bytes."""
    text = json.dumps(asdict(manifest), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Raises `UserError` where the folder is no complete store, or one of another version."""
    path = folder / MANIFEST
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        version = value["version"]
        if version != FORMAT_VERSION:
            raise UserError(
                f"{folder}: a token store of format {version}; this program reads format {FORMAT_VERSION}. "
                "Build it anew: bertcli prepare CONFIG --overwrite"
            )
        sources = tuple(SourceRecord(**source) for source in value.pop("sources"))
        sides = {side: SideCounts(**value.pop(side)) for side in ("train", "heldout")}
        return Manifest(sources=sources, **sides, **value)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder}: no token store: it has no {MANIFEST}. Build one: bertcli prepare CONFIG"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: damaged: {error!r}. Build the store anew: bertcli prepare CONFIG --overwrite"
        ) from None
