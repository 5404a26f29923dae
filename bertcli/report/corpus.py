"""The token store of a pretraining run -> what the corpus is, without reading it again."""

from __future__ import annotations

from pathlib import Path

from bertcli.config.schema import PretrainConfig
from bertcli.report.formatting import number, percent, short
from bertcli.store.manifest import Manifest, SideCounts

Facts = list[tuple[str, str]]
"""Name -> value, to be read."""
_FILES = 8
_LONGEST = 300


def corpus_facts(config: PretrainConfig, manifest: Manifest) -> Facts:
    """Documents, sentences, tokens and the vocabulary, as the store has counted them."""
    train, heldout = manifest.train, manifest.heldout
    names = [Path(source.name).name for source in manifest.sources[:_FILES]]
    more = len(manifest.sources) - len(names)
    files = ", ".join(names) + (f" and {number(more)} more" if more > 0 else "")
    words, text = train.words + heldout.words, train.bytes + heldout.bytes
    dropped = manifest.dropped_documents + manifest.dropped_sentences
    facts = [
        ("files", short(files, _LONGEST)),
        ("language", config.corpus.language),
        ("text", f"{text / 1e6:,.1f} MB, {number(words)} words"),
        ("to train on", _side(train)),
        ("held out", _side(heldout) if heldout.documents else "nothing (corpus.heldout_fraction)"),
        ("one sentence", f"{number(train.one_sentence_documents)} documents, which give no true pair"),
        ("vocabulary", _vocabulary(manifest, config)),
        ("pieces a word", number(manifest.tokens_per_word)),
        ("unknown", f"{percent(manifest.unk_rate)} of the tokens"),
        ("unigram entropy", f"{manifest.unigram_entropy:.3f} nats a token: a loss that needs no context"),
    ]
    if dropped:
        facts.append(("documents and sentences left out", f"{number(dropped)} without a token"))
    return facts


def _side(side: SideCounts) -> str:
    counts = {"documents": side.documents, "sentences": side.sentences, "tokens": side.tokens}
    return ", ".join(f"{number(count)} {what}" for what, count in counts.items())


def _vocabulary(manifest: Manifest, config: PretrainConfig) -> str:
    """A given tokenizer has a kind and a case of its own, which the config does not say."""
    given = config.tokenizer.path is not None or config.model.init_from is not None
    lower = "lower-cased" if config.tokenizer.lowercase is True else "cased"
    kind = "of a given tokenizer" if given else f"{config.tokenizer.kind}, {lower}"
    return f"{number(manifest.vocab_size)} entries, {kind}"
