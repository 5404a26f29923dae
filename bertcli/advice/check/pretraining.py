"""The check of a pretraining config: the content of its corpus, and what to mend."""

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.advice.check.corpus import CorpusCounts, count_corpus
from bertcli.advice.check.corpus_findings import corpus_findings
from bertcli.advice.check.findings import Finding, Places
from bertcli.advice.check.lines import Examination
from bertcli.batches.share import BatchSizes, ramp_steps, tokens_until
from bertcli.config.run import PretrainRecipe
from bertcli.config.schema import DEFAULT_STEPS, PretrainConfig
from bertcli.config.section import ends
from bertcli.corpus.begin import begin_vocabulary, begun_vocabulary, partial_of
from bertcli.corpus.build import SMALL_CORPUS, num_processes
from bertcli.corpus.chunks import Report, encoding_notes, find_corpus
from bertcli.corpus.finish import check_arrays, unigram_entropy
from bertcli.corpus.manifest import MANIFEST, Manifest
from bertcli.corpus.matching import (
    check_matches,
    load_given_tokenizer,
    output_paths,
    store_folder,
    train_on_corpus,
)
from bertcli.corpus.sample import sample_share
from bertcli.corpus.shown import look_at_lines
from bertcli.corpus.sources import Source
from bertcli.corpus.token_store import SIDES, open_store
from bertcli.folders.lengths import check_length
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.errors import UserError
from bertcli.tokenizer.frame import Frame
from bertcli.tokenizer.tokenizer import Tokenizer

TOKENIZED_BYTES = 4_000_000
"""Approximate size of the text that is tokenized; it takes a fraction of the time to read all of the text."""
IDENTIFIED_BYTES = 250_000
"""Approximate size of the text whose language is identified."""
SMALLEST_SAFE_VOCABULARY = 2200
"""Least size of a vocabulary that surely holds a text's characters and their ## pieces; for a smaller one,
only training shows it."""


class CorpusReport(NamedTuple):
    """The result of `bertcli check-data` for a pretraining config; figures are named as in `prepare`."""

    figures: dict[str, Any]
    findings: list[Finding]


def check_pretraining(
    config: PretrainRecipe, tokenize_all: bool, report: Report, processes: int | None = None
) -> CorpusReport:
    """Read the corpus once (twice if a vocabulary is trained), and check it.

    All tokens of a small corpus are counted; of a larger corpus, only those of a sample. If the config names
    no vocabulary and no store has trained one, only a small corpus is tokenized, with a vocabulary trained
    for it.

    Args:
        config: the result of `training.recipe.decide_recipe`.
        tokenize_all: count the tokens of the whole text; if there is no vocabulary, train it and keep it for
            the build of the store, which would train it again.
        processes: number of worker processes that examine the text; 0: none; None: as many as `prepare`
            takes. The figures never depend on it.

    Raises:
        UserError: files, tokenizer, language or encoding do not exist.
    """
    corpus = config.corpus
    sources = find_corpus(corpus, output_paths(config))
    for note in encoding_notes(sources, corpus):
        report(note)
    is_small = sum(source.size for source in sources) < SMALL_CORPUS
    if processes is None:
        processes = num_processes(sources, num_local_ranks=1)
    findings: list[Finding] = []
    manifest = _check_store(config, findings, report)
    _check_length(config, findings)
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer, failure = None, None
        if manifest is None:
            is_tiny = config.tokenizer.vocab_size < SMALLEST_SAFE_VOCABULARY
            keeps = None
            if tokenize_all or is_small or is_tiny:
                keeps = tokenize_all and not os.path.lexists(partial_of(config))  # another build's
            tokenizer, failure = _find_tokenizer(config, sources, Path(scratch), keeps=keeps, report=report)
        what = Examination(
            corpus.language,
            split=corpus.format != "sentences",
            identified_share=sample_share(sources, IDENTIFIED_BYTES),
            tokenized_share=1.0 if tokenize_all or is_small else sample_share(sources, TOKENIZED_BYTES),
            tokenizer=None if tokenizer is None else str(scratch),
        )
        counts = count_corpus(
            sources,
            corpus,
            what,
            vocab_size=tokenizer.vocab_size if tokenizer else 0,
            processes=processes,
            report=report,
        )
        reader = Tokenizer.load(store_folder(config) / "tokenizer") if manifest else tokenizer
        look = None if reader is None else look_at_lines(sources, corpus, reader)
    if manifest is not None:
        tokens = _stored_tokens(manifest)
    else:
        tokens = None if tokenizer is None else _count_tokens(counts, tokenizer, what.tokenized_share)
    if failure is not None and not counts.findings:  # otherwise the findings already say why it failed
        findings.append(Finding(True, failure, share=1.0))
    figures = _figures(config, sources, counts, tokens=tokens, frame=reader.frame if reader else None)
    if look is not None:
        figures |= {
            "line_written": look.written,
            "line_read": look.read,
            "tokens_per_character": look.tokens_per_character,
            "blanks_per_character": look.blanks,
        }
    return CorpusReport(
        figures, [*findings, *corpus_findings(config, sources, counts, figures=figures, look=look)]
    )


def _check_store(config: PretrainConfig, findings: list[Finding], report: Report) -> Manifest | None:
    """The manifest of the store that a run would open; None: there is none, or the run would refuse it."""
    folder = store_folder(config)
    if not (folder / MANIFEST).is_file():
        return None
    try:
        store = open_store(folder)
        check_matches(folder, store.manifest, config)
        check_arrays(store, config.seed, report)
    except UserError as error:
        findings.append(Finding(True, str(error), share=1.0))
        return None
    return store.manifest


def _check_length(config: PretrainConfig, findings: list[Finding]) -> None:
    if config.model.init_from is not None:
        try:
            check_length(Path(config.model.init_from), config.data.max_length, "data.max_length")
        except UserError as error:
            findings.append(Finding(True, str(error), share=1.0))


def _find_tokenizer(
    config: PretrainRecipe, sources: Sequence[Source], scratch: Path, keeps: bool | None, report: Report
) -> tuple[Tokenizer | None, str | None]:
    """The tokenizer of a run, saved in `scratch` for the workers; and the error if training it failed.

    `keeps`: True if a trained vocabulary is kept for the build of the store; None: none is trained.
    """
    tokenizer = load_given_tokenizer(config) or begun_vocabulary(config, sources)
    try:
        if tokenizer is None and keeps:
            tokenizer = begin_vocabulary(config, sources, report)
        elif tokenizer is None and keeps is not None:
            tokenizer = train_on_corpus(
                sources,
                config.corpus,
                config.tokenizer,
                report=report,
                model_type=config.model.fresh.family.model_type,
                spool_folder=scratch,
            )
    except UserError as error:
        return None, str(error)
    if tokenizer is not None:
        tokenizer.save(scratch)
    return tokenizer, None


def _stored_tokens(manifest: Manifest) -> dict[str, Any]:
    return {
        "tokens_from": "store",
        "tokens_error": 0.0,
        "tokens": manifest.train.tokens,
        "heldout_tokens": manifest.heldout.tokens,
        "vocab_size": manifest.vocab_size,
        "tokens_per_word": manifest.tokens_per_word,
        "unk_rate": manifest.unk_rate,
        "unigram_entropy": manifest.unigram_entropy,
    }


def _count_tokens(counts: CorpusCounts, tokenizer: Tokenizer, share: float) -> dict[str, Any]:
    """The figures of `_stored_tokens`, from the tokens of a share of the lines; exact if the share is 1.

    `tokens_error` is the standard error, as a share of the tokens; `unigram_entropy` is in nats a token.
    """
    sides = [counts.progress.sides[side] for side in SIDES]
    if share >= 1.0:
        tokens, error = [side.tokens for side in sides], 0.0
        ratio = sum(tokens) / max(1, counts.progress.text.words)
    else:
        t, w, tt, tw, ww = counts.moments.tolist()
        ratio = t / max(1.0, w)
        tokens = [round(ratio * side.words) for side in sides]
        error = math.sqrt(max(0.0, (1 - share) * (tt - 2 * ratio * tw + ratio * ratio * ww))) / max(1.0, t)
    uses = counts.uses[: len(SIDES)]
    return {
        "tokens_from": "all" if share >= 1.0 else "sample",
        "tokens_error": error,
        "tokens": tokens[0],
        "heldout_tokens": tokens[1],
        "vocab_size": tokenizer.vocab_size,
        "tokens_per_word": ratio,
        "unk_rate": float(uses[:, tokenizer.unk_id].sum() / max(1, uses.sum())),
        "unigram_entropy": unigram_entropy(uses[0]),
    }


def _figures(
    config: PretrainRecipe,
    sources: Sequence[Source],
    counts: CorpusCounts,
    tokens: dict[str, Any] | None,
    frame: Frame | None,
) -> dict[str, Any]:
    train, heldout = (counts.progress.sides[side] for side in SIDES)
    text = counts.progress.text
    repeated, repeated_lines = counts.documents.times(), counts.repeated_lines.times()
    figures: dict[str, Any] = {
        "files": len(sources),
        "bytes": text.bytes,
        "words": text.words,
        "lines": counts.lines,
        "documents": train.documents,
        "cut_documents": counts.progress.cut_documents,
        "one_sentence_documents": train.one_sentence_documents,
        "sentences": train.sentences,
        "heldout_documents": heldout.documents,
        "heldout_sentences": heldout.sentences,
        "dropped_documents": counts.progress.dropped_documents,
        "dropped_sentences": counts.progress.dropped_sentences,
        "pairs": train.sentences - train.documents,
        "repeated_documents": repeated.value,
        "repeated_documents_error": repeated.error,
        "repeated_lines": repeated_lines.value,
        "repeated_lines_error": repeated_lines.error,
        "repeated_lines_share": counts.repeated_lines.num_bytes().value / max(1, text.bytes),
        "long_lines": counts.faults.get("long", Places()).count,
        "control_character_lines": counts.faults.get("control", Places()).count,
        "mojibake_lines": counts.faults.get("mojibake", Places()).count,
        "identified_lines": counts.identified.count,
        "other_language_share": sum(places.num_bytes for places in counts.others.values())
        / max(1, counts.identified.num_bytes),
        "other_language_lines": {name: places.count for name, places in counts.others.items()},
        "tokens_from": None,
    }
    if tokens is None or frame is None:
        return figures
    data, training = config.data, config.training
    room = data.max_length - frame.cost(OBJECTIVES[data.objective].pairs.is_pair)
    steps, batch_size = training.steps or DEFAULT_STEPS, ends(training.batch_size)[1]
    steps_per_epoch = math.ceil(tokens["tokens"] / (batch_size * room))
    sizes = BatchSizes(training.batch_size, ramp_steps(config, steps))
    tokens_read = tokens_until(data, frame, sizes, step=steps)
    epochs = tokens_read / max(1, tokens["tokens"]) if training.epochs is None else training.epochs
    return (
        figures
        | tokens
        | {
            "steps_per_epoch": steps_per_epoch,
            "pairs_per_epoch": steps_per_epoch * batch_size,
            "epochs": epochs,
        }
    )
