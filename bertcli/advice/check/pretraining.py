"""The check of a pretraining config: the content of its corpus, and what to mend."""

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.advice.check.corpus import CorpusCounts, count_corpus
from bertcli.advice.check.corpus_findings import corpus_findings
from bertcli.advice.check.findings import failing
from bertcli.advice.check.lines import Examination
from bertcli.batches.share import BatchSizes, ramp_steps, tokens_until
from bertcli.config.run import PretrainRecipe
from bertcli.config.schema import DEFAULT_STEPS, PretrainConfig
from bertcli.config.section import ends
from bertcli.corpus import begin, chunks, finish, matching, sample, shown, token_store
from bertcli.corpus.build import SMALL_CORPUS, num_processes
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.manifest import MANIFEST, Manifest
from bertcli.folders.init_from import check_max_length
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.errors import Finding
from bertcli.system.terminal import Report
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
    files = chunks.find_corpus(corpus, matching.output_paths(config))
    for note in chunks.encoding_notes(files, corpus):
        report(note)
    counts_all = tokenize_all or sum(file.size for file in files) < SMALL_CORPUS
    if processes is None:
        processes = num_processes(files, num_local_ranks=1)
    findings: list[Finding] = []
    manifest = _check_store(config, findings, report)
    with failing(findings):
        check_max_length(config)
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer, failures = None, list[Finding]()
        if manifest is None:
            tokenizer = matching.load_given_tokenizer(config) or begin.begun_vocabulary(config, files)
            is_tiny = config.tokenizer.vocab_size < SMALLEST_SAFE_VOCABULARY
            if tokenizer is None and (counts_all or is_tiny):
                with failing(failures):
                    tokenizer = _train(config, files, scratch, keeps=tokenize_all, report=report)
        if tokenizer is not None:
            tokenizer.save(Path(scratch))
        what = Examination(
            [None if source.format == "sentences" else source.language for source in corpus.alone],
            identified_share=sample.sample_share(files, IDENTIFIED_BYTES),
            tokenized_share=1.0 if counts_all else sample.sample_share(files, TOKENIZED_BYTES),
            tokenizer=None if tokenizer is None else scratch,
            vocab_size=tokenizer.vocab_size if tokenizer else 0,
        )
        counts = count_corpus(files, corpus, what, processes=processes, report=report)
        reader = Tokenizer.load(matching.store_folder(config) / "tokenizer") if manifest else tokenizer
        look = None if reader is None else shown.look_at_lines(files, corpus, reader)
    if manifest is not None:
        tokens = _stored_tokens(manifest)
    else:
        tokens = None if tokenizer is None else _count_tokens(counts, tokenizer, what.tokenized_share)
    if not counts.findings:  # otherwise they already say why the training of the vocabulary failed
        findings += failures
    figures = _figures(config, files, counts, tokens=tokens, frame=reader.frame if reader else None)
    if look is not None:
        figures |= {
            "line_written": look.written,
            "line_read": look.read,
            "tokens_per_character": look.tokens_per_character,
            "blanks_per_character": look.blanks,
        }
    findings += corpus_findings(config, files, counts, figures=figures, look=look)
    return CorpusReport(figures, findings)


def _check_store(config: PretrainConfig, findings: list[Finding], report: Report) -> Manifest | None:
    """The manifest of the store that a run would open; None: there is none, or the run would refuse it."""
    folder = matching.store_folder(config)
    if not (folder / MANIFEST).is_file():
        return None
    with failing(findings):
        store = token_store.open_store(folder)
        matching.check_matches(folder, store.manifest, config)
        finish.check_arrays(store, config.seed, report)
        return store.manifest
    return None


def _train(
    config: PretrainRecipe, files: Sequence[CorpusFile], scratch: str, keeps: bool, report: Report
) -> Tokenizer:
    """The vocabulary of a run; `keeps`: it is kept for the build of the store, if no other build runs."""
    if keeps and not os.path.lexists(begin.partial_of(config)):
        return begin.begin_vocabulary(config, files, report)
    return matching.train_on_corpus(
        files,
        config.corpus,
        config.tokenizer,
        report=report,
        model_type=config.model.fresh.family.model_type,
        spool_folder=Path(scratch),
    )


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
    sides = [counts.progress.side(name) for name in token_store.SIDES]
    if share >= 1.0:
        tokens, error = [side.tokens for side in sides], 0.0
        ratio = sum(tokens) / max(1, counts.progress.text.words)
    else:
        t, w, tt, tw, ww = counts.moments.tolist()
        ratio = t / max(1.0, w)
        tokens = [round(ratio * side.words) for side in sides]
        error = math.sqrt(max(0.0, (1 - share) * (tt - 2 * ratio * tw + ratio * ratio * ww))) / max(1.0, t)
    uses = counts.uses.sum(axis=0)
    return {
        "tokens_from": "all" if share >= 1.0 else "sample",
        "tokens_error": error,
        "tokens": tokens[0],
        "heldout_tokens": tokens[1],
        "vocab_size": tokenizer.vocab_size,
        "tokens_per_word": ratio,
        "unk_rate": float(uses[:, tokenizer.unk_id].sum() / max(1, uses.sum())),
        "unigram_entropy": finish.unigram_entropy(uses[0]),
    }


def _figures(
    config: PretrainRecipe,
    files: Sequence[CorpusFile],
    counts: CorpusCounts,
    tokens: dict[str, Any] | None,
    frame: Frame | None,
) -> dict[str, Any]:
    progress, text = counts.progress, counts.progress.text
    train, heldout = (progress.side(name) for name in token_store.SIDES)
    other_bytes = sum(places.num_bytes for places in counts.others.values())
    repeated, repeated_lines = counts.documents.times(), counts.repeated_lines.times()
    figures: dict[str, Any] = {
        "files": len(files),
        "bytes": text.bytes,
        "words": text.words,
        "lines": counts.lines,
        "documents": train.documents,
        "cut_documents": sum(source.cut_documents for source in progress.sources),
        "one_sentence_documents": train.one_sentence_documents,
        "sentences": train.sentences,
        "heldout_documents": heldout.documents,
        "heldout_sentences": heldout.sentences,
        "dropped_documents": sum(source.dropped_documents for source in progress.sources),
        "dropped_sentences": sum(source.dropped_sentences for source in progress.sources),
        "pairs": train.sentences - train.documents,
        "repeated_documents": repeated.value,
        "repeated_documents_error": repeated.error,
        "repeated_lines": repeated_lines.value,
        "repeated_lines_error": repeated_lines.error,
        "repeated_lines_share": counts.repeated_lines.num_bytes().value / max(1, text.bytes),
        "long_lines": counts.faults["long"].count,
        "control_character_lines": counts.faults["control"].count,
        "mojibake_lines": counts.faults["mojibake"].count,
        "identified_lines": counts.identified.count,
        "other_language_share": other_bytes / max(1, counts.identified.num_bytes),
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
    pairs = steps_per_epoch * batch_size
    return figures | tokens | {"steps_per_epoch": steps_per_epoch, "pairs_per_epoch": pairs, "epochs": epochs}
