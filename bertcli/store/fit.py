"""Whether a vocabulary fits the text that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.store.manifest import Manifest
from bertcli.store.vocabulary import given_tokenizer

UNKNOWN, MOST_UNKNOWN = 0.01, 0.2
"""Shares of the tokens: above the first a vocabulary is warned of, from the second it is refused."""
PIECES = 2.5
"""Tokens a word; a vocabulary made for the text gives 1.2 to 2."""
_NO_BLANKS = 40
"""Bytes a word. More mean a script without blanks between words, where pieces a word say nothing."""
_ANY_TEXT = "set tokenizer.kind: byte-bpe, a kind of vocabulary that reads any text"


def misfits(config: PretrainConfig, manifest: Manifest) -> Iterator[str]:
    """Signs that the config's vocabulary was made for other text than the store's; none where it fits."""
    if manifest.unk_rate > UNKNOWN:
        yield f"{unknown(manifest.unk_rate)}. To read them, {known_by(config)}; bertcli check-data says more"
    if (vocabulary := given_tokenizer(config)) is None:
        return
    sides = (manifest.train, manifest.heldout)
    bytes_a_word = sum(side.bytes for side in sides) / max(1, sum(side.words for side in sides))
    if manifest.tokens_per_word > PIECES and bytes_a_word < _NO_BLANKS:
        yield (
            f"a word is cut into {manifest.tokens_per_word:.2f} pieces: the vocabulary of {vocabulary} was "
            "made for other text; rows hold more of it with one that is trained on this text (without "
            "tokenizer.path and model.init_from)"
        )


def check_known(config: PretrainConfig, unk_rate: float) -> None:
    """Raise `UserError` where so many tokens of a store are unknown that nothing can be learned from it."""
    if unk_rate >= MOST_UNKNOWN:
        raise UserError(
            f"{unknown(unk_rate)}. A model would learn next to nothing; {known_by(config)}. "
            "If the store exists already, build it again then: bertcli prepare CONFIG --overwrite"
        )


def unknown(rate: float) -> str:
    """What a share of unknown tokens means, in words."""
    return (
        f"{rate:.1%} of the tokens are unknown: the vocabulary lacks their characters, or words are "
        "too long for WordPiece (over 100 characters)"
    )


def known_by(config: PretrainConfig) -> str:
    """What to change in the config so that no token is unknown."""
    if config.model.init_from is not None:
        return f"leave model.init_from out, and {_ANY_TEXT}: a new model; or name a model for such text"
    if config.tokenizer.path is not None:
        return f"leave tokenizer.path out, and {_ANY_TEXT}"
    if config.distillation is not None:
        return f"leave distillation out, and {_ANY_TEXT}; or name a teacher for such text"
    return _ANY_TEXT
