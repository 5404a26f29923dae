"""The findings in the counts of a corpus: what to mend before a run reads it."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from bertcli.advice.check.corpus import CorpusCounts
from bertcli.advice.check.findings import PLACES, failing
from bertcli.advice.check.lines import FAULT_TEXTS
from bertcli.advice.check.repeats import RepeatCounter
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.finish import MOST_UNKNOWN, PIECES, UNKNOWN, check_heldout, known_by
from bertcli.corpus.language import FEWEST_LETTERS
from bertcli.corpus.sample import FEW_BLANKS, layout_advice
from bertcli.corpus.shown import LineLook
from bertcli.corpus.token_store import SIDES
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.errors import Finding

REPEATED_LINES = 0.01
"""Share of the text in repeated lines; below it, these are headings and refrains, which do no harm."""
OTHER_LANGUAGE = 0.02
"""Share of the identified text in another language; below it, these are quotations or misclassified lines."""
ONE_SENTENCE = 0.1
"""Share of documents with one sentence that is a finding."""
READS = 100
"""Number of times that a run may read its text; usual long runs on little text stop at some tens."""
STRIPPED = 0.02
"""Share of the words that lose a mark on a letter; below it, these are a few foreign words."""
RARE_PAIRS = 10
"""Limit for how often a run reads each true pair, relative to its text (as in `BatchStream.reuse_lines`)."""


def corpus_findings(
    config: PretrainConfig,
    files: Sequence[CorpusFile],
    counts: CorpusCounts,
    figures: dict[str, Any],
    look: LineLook | None,
) -> list[Finding]:
    """Findings that would stop the run (reading, building the store, drawing pairs) or harm the model."""
    return [
        *counts.findings,
        *layout_advice(files, config.corpus),
        *_stops(config, counts),
        *_few_pairs(config, counts, figures),
        *_faults(counts),
        *_repeats(counts, figures),
        *_other_language(config, counts, figures),
        *_epochs(config, figures),
        *_vocabulary(config, figures, look),
    ]


CLEANS = "bertcli clean CONFIG OUT does it"


def _stops(config: PretrainConfig, counts: CorpusCounts) -> Iterator[Finding]:
    if counts.progress.text.documents == 0 and any(finding.fails for finding in counts.findings):
        return  # a finding already says that nothing could be read
    findings: list[Finding] = []
    with failing(findings):
        check_heldout(counts.progress, config.corpus.heldout_fraction)
    yield from findings
    if findings or not OBJECTIVES[config.data.objective].pairs.is_pair:
        return
    for name, source in zip(config.corpus.source_names, counts.progress.sources, strict=True):
        train, where = source.sides["train"], f" in the source {name}" if config.corpus.sources else ""
        if (len(source.pieces["train"]) or train.documents) < 2:
            yield Finding(
                f"sentence pairs (data.objective) need two documents to train on, and there is one{where}",
                "set corpus.document to what ends a document (blank-line or file), add files, or set "
                "data.objective: mlm",
                share=1.0,
                fails=True,
            )
        elif train.sentences == train.documents:
            yield Finding(
                "sentence pairs (data.objective) need documents of two sentences or more, and every document "
                f"to train on is one sentence{where}",
                "look at corpus.format, corpus.document and corpus.language, or set data.objective: mlm",
                share=1.0,
                fails=True,
            )


def _few_pairs(config: PretrainConfig, counts: CorpusCounts, figures: dict[str, Any]) -> Iterator[Finding]:
    train, heldout = (counts.progress.side(name) for name in SIDES)
    pairs = train.sentences - train.documents
    if not OBJECTIVES[config.data.objective].pairs.is_pair or not pairs:
        return
    share = train.one_sentence_documents / train.documents
    reads = figures.get("epochs") or 0.0
    uses = reads * figures.get("pairs_per_epoch", 0) / 2 / pairs
    if uses > RARE_PAIRS * reads > 0:
        yield Finding(
            f"few places give a true pair ({pairs:,}): each is used about {uses:.0f} times while the text is "
            f"read {reads:.1f} times",
            "most documents are one sentence long: join what belongs together, or set data.objective: mlm",
            share=share,
        )
    elif share > ONE_SENTENCE:
        problem = f"{share:.0%} of the documents are one sentence long: they give no true pair"
        mend = "look at what ends a document (corpus.document, blank lines), or set data.objective: mlm"
        yield Finding(problem, mend, share=share)
    if heldout.documents and heldout.sentences == heldout.documents:
        problem = "every held-out document is one sentence long: held-out scores measure MLM alone"
        yield Finding(problem, "raise corpus.heldout_fraction to hold out more")


def _faults(counts: CorpusCounts) -> Iterator[Finding]:
    for fault, (problem, mend) in FAULT_TEXTS.items():
        places = counts.faults[fault]
        if places.count:
            share = places.count / counts.lines
            found = f"{places.count:,} lines ({_percent(share)}) {problem}"
            yield Finding(found, mend, places=tuple(places.first), share=share)


def _repeats(counts: CorpusCounts, figures: dict[str, Any]) -> Iterator[Finding]:
    if counts.documents.times().value:
        share = counts.documents.num_bytes().value / max(1, figures["bytes"])
        mend = f"leave the copies out: the model memorizes text that occurs twice; {CLEANS}"
        yield _repeat(counts, counts.documents, "documents", mend=mend, share=share)
    share = figures["repeated_lines_share"]
    if share > REPEATED_LINES:
        mend = f"leave out headers, footers, licenses and copies; {CLEANS}"
        yield _repeat(counts, counts.repeated_lines, "lines", mend=mend, share=share)


def _repeat(counts: CorpusCounts, counter: RepeatCounter, what: str, mend: str, share: float) -> Finding:
    times, name = counter.times(), counts.place_name
    number = f"about {times.value:,} ± {times.error:,.0f}" if times.error else f"{times.value:,}"
    places = tuple(
        f"{name(each.again)}: {each.shown}, as in {name(each.first)}; {each.times:,} such copies"
        for each in counter.heaviest(PLACES)
    )
    problem = f"{number} {what} ({_percent(share)} of the text) repeat an earlier one"
    return Finding(problem, mend, places=places, share=share)


def _other_language(
    config: PretrainConfig, counts: CorpusCounts, figures: dict[str, Any]
) -> Iterator[Finding]:
    share, all_bytes = figures["other_language_share"], max(1, counts.identified.num_bytes)
    if share <= OTHER_LANGUAGE:
        return
    commonest = sorted(counts.others.items(), key=lambda item: -item[1].num_bytes)
    named = ", ".join(f"{name} {places.num_bytes / all_bytes:.1%}" for name, places in commonest[:PLACES])
    first = [place for _, places in commonest for place in places.first]
    number = sum(figures["other_language_lines"].values())
    yield Finding(
        f"{_percent(share)} of the text is likely not {' or '.join(config.corpus.languages)}: {named}; it is "
        f"{number:,} of {counts.identified.count:,} sampled lines",
        f"set corpus.language to the language of the text, or leave the other text out; {CLEANS}. py3langid "
        f"identifies lines of {FEWEST_LETTERS} letters and more, and may confuse similar languages",
        places=tuple(first[:PLACES]),
        share=share,
    )


def _epochs(config: PretrainConfig, figures: dict[str, Any]) -> Iterator[Finding]:
    reads = figures.get("epochs") or 0.0
    if reads > READS:
        steps = math.ceil(figures["steps_per_epoch"] * READS)
        problem = f"the run reads the text {reads:,.0f} times: the model memorizes it long before the end"
        mend = f"lower training.steps, to about {steps:,} or less, or give more text"
        yield Finding(problem, mend, share=1.0)


def _vocabulary(config: PretrainConfig, figures: dict[str, Any], look: LineLook | None) -> Iterator[Finding]:
    unknown, pieces = figures.get("unk_rate", 0.0), figures.get("tokens_per_word", 0.0)
    is_given = config.tokenizer.path is not None or config.model.init_from is not None
    if look is not None and look.stripped > STRIPPED:
        problem = f"{_percent(look.stripped)} of the words lose marks on their letters: "
        problem += f"{look.written!r} is read as {look.read!r}"
        mend = "train a vocabulary with tokenizer.strip_accents: false, or use a model that keeps them"
        yield Finding(problem, mend, share=look.stripped)
    if unknown > UNKNOWN:
        fails, why = unknown >= MOST_UNKNOWN, "the vocabulary lacks characters of this text"
        mend = "give more text: a vocabulary leaves out characters that occur once or twice"
        if look is not None and look.unbroken > UNKNOWN:
            why = "a word of more than 100 characters is one unknown token, and "
            why += f"{_percent(look.unbroken)} of the text is in such words"
            mend = f"{known_by(config)}; or insert blanks between the words first, with a word segmenter"
        elif fails:
            mend = known_by(config)
        elif is_given:
            mend = "leave tokenizer.path out to train a vocabulary on it"
        elif figures["vocab_size"] >= config.tokenizer.vocab_size:
            mend = "raise tokenizer.vocab_size"
        problem = f"{_percent(unknown)} of the tokens are unknown: {why}"
        yield Finding(problem, mend, share=unknown, fails=fails)
    has_words = look is None or look.blanks >= FEW_BLANKS
    if pieces > PIECES and is_given and has_words:
        problem = f"a word is cut into {pieces:.2f} pieces: the vocabulary was made for other text"
        mend = "leave tokenizer.path (or model.init_from) out to train a vocabulary on this text"
        yield Finding(problem, mend)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 or share == 0 else "under 0.1%"
