"""Whether a given vocabulary fits the text of a store."""

from __future__ import annotations

from collections.abc import Iterator

from bertcli.store.manifest import Manifest

UNKNOWN = 0.01
"""Share of the tokens."""
PIECES = 2.5
"""Tokens a word; a vocabulary made for the text gives 1.2 to 2."""
_NO_BLANKS = 40
"""Bytes a word. More mean a script without blanks between words, where pieces a word say nothing."""


def misfits(manifest: Manifest, vocabulary: str) -> Iterator[str]:
    """Signs that `vocabulary`, a path, was made for other text than the store's; none where it fits."""
    if manifest.unk_rate > UNKNOWN:
        yield (
            f"{manifest.unk_rate:.1%} of the tokens are unknown: the vocabulary of {vocabulary} lacks "
            "characters of this text; bertcli check-data says more"
        )
    sides = (manifest.train, manifest.heldout)
    bytes_a_word = sum(side.bytes for side in sides) / max(1, sum(side.words for side in sides))
    if manifest.tokens_per_word > PIECES and bytes_a_word < _NO_BLANKS:
        yield (
            f"a word is cut into {manifest.tokens_per_word:.2f} pieces: the vocabulary of {vocabulary} was "
            "made for other text; rows hold more of it with one that is trained on this text (without "
            "tokenizer.path and model.init_from)"
        )
