"""The lines of a pretraining run's config, each with the reason for its value, and what `init` prints."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.advice.bench.probe import known_device
from bertcli.advice.init import fit_pretraining as fitting
from bertcli.advice.init.amount import Amount, Prepared
from bertcli.advice.init.corpus import CorpusLook
from bertcli.advice.init.written import Request, Written, in_words, predicted
from bertcli.config.corpus import CorpusConfig
from bertcli.config.schema import PretrainConfig
from bertcli.config.yaml_text import Block, Line
from bertcli.corpus.finish import UNKNOWN, unknown
from bertcli.tokenizer.normalize import casing_rules
from bertcli.training.recipe import PLATEAU_STEPS

_FEW_TOKENS = 300_000
"""Tokens of a corpus; from a smaller one, a new model learns next to nothing."""
_CHECKPOINTS, _LOGGED = 4, 100


@dataclass(frozen=True)
class PretrainingPlan:
    """Everything that the config describes.

    Attributes:
        look, amount: form and amount of the text, or of those of its files that fit into the time.
        share: the share of the bytes in these files.
        longest: largest number of tokens in a row that the documents, or a given model, can fill.
        objective: the line of the objective; None: auto decides.
        config: the config before model, rows and steps were chosen.
        started: seconds until the command begins to work.
    """

    look: CorpusLook
    amount: Amount
    share: float
    longest: float
    objective: Line | None
    config: PretrainConfig
    prepared: Prepared
    fit: fitting.PretrainingFit
    started: float
    request: Request

    @property
    def seconds(self) -> float:
        """Time of the whole command; on another device that of training, because the store is made before."""
        before = 0.0 if self.request.device else self.started + self.prepared.seconds
        return before + self.fit.seconds

    @property
    def budget(self) -> float:
        """Seconds that the run may take."""
        return 60 * self.request.minutes


def pretraining_written(plan: PretrainingPlan) -> Written:
    """The config and the lines that describe it."""
    fit, device = plan.fit, plan.request.device
    time, how = predicted(plan.seconds, fit.speed.training, device), "calculated" if device else "measured"
    length = Line("max_length", fit.max_length, beside="tokens of a row")
    steps = (
        f"{fit.tokens:,.0f} tokens, {_read(fit.reads)}. {in_words(fit.seconds)} at "
        f"{fit.rows_per_second:,.0f} rows a second ({how})"
    )
    rows = Line("batch_size", fit.batch_size, beside="rows of a step, for so long a run")
    lines: list[Line | Block] = [
        Line("output_dir", plan.config.output_dir),
        Block("corpus", list(_corpus(plan))),
        *_tokenizer(plan),
        Block("data", [plan.objective, length] if plan.objective else [length]),
        Block("model", list(_model(plan))),
        Block("training", [Line("steps", fit.steps, beside=steps), rows]),
        Block("evaluation", [Line("every_steps", math.ceil(fit.steps / fitting.EVALUATIONS))]),
        Block("checkpoint", [Line("every_steps", max(1, fit.steps // _CHECKPOINTS))]),
        Block("logging", [Line("every_steps", max(1, fit.steps // _LOGGED))]),
    ]
    return Written(lines, time, "pretrain", summary=list(_summary(plan)))


def _corpus(plan: PretrainingPlan) -> Iterator[Line]:
    comments = plan.look.comments | {"files": plan.amount.line()}
    if plan.share < 1.0:
        why = "vocabulary and store of all take too much of the time"
        comments["files"] += f"; {plan.share:.0%} of the text: {why}"
    for name in CorpusConfig.model_fields:
        if name in plan.look.keys:
            yield Line(name, plan.look.keys[name], beside=comments.get(name, ""))
    fraction = plan.prepared.heldout_fraction
    if fraction != plan.look.config.heldout_fraction:
        few = "more than the usual 0.05, because the documents are few"
        none = "too few different documents to hold some out: nothing is evaluated"
        yield Line("heldout_fraction", fraction, beside=few if fraction else none)


def _tokenizer(plan: PretrainingPlan) -> Iterator[Block]:
    if plan.config.model.init_from is None:
        tokenizer = plan.prepared.config.tokenizer
        time = f"vocabulary and store take about {in_words(plan.prepared.seconds)}"
        lines = [Line("vocab_size", tokenizer.vocab_size, beside=f"by the size of the text; {time}")]
        if (why := _why_bytes(plan)) is not None:
            lines.insert(0, Line("kind", tokenizer.kind, beside=why))
        if casing := _casing(plan):
            lines.append(Line("lowercase", True, beside=f"{casing}; or false: cased"))
        yield Block("tokenizer", lines)


def _casing(plan: PretrainingPlan) -> str:
    """The way letters lose their case, if the language has its own rules for that; else ""."""
    model = plan.config.model
    lowercase = model.init_from is None and model.fresh.lowercase
    return casing_rules(plan.look.config.language) if lowercase else ""


def _why_bytes(plan: PretrainingPlan) -> str | None:
    """The reason for a vocabulary of bytes; None: the vocabulary is of the usual kind."""
    unread, unknown_before = plan.amount.unread, plan.prepared.unk_rate_before
    kind = plan.config.model.fresh.tokenizer
    if plan.config.model.init_from is not None or kind == "byte-bpe":
        return None
    usual = "WordPiece" if kind == "wordpiece" else "Unigram"
    if unread > UNKNOWN:
        return f"{unread:.0%} of the text is in words of over 100 characters, too long for {usual}"
    if unknown_before:
        return f"with {usual}, the usual kind, {unknown_before:.1%} of the tokens are unknown"
    return None


def _model(plan: PretrainingPlan) -> Iterator[Line]:
    fit = plan.fit
    if fit.preset is None:
        yield Line("init_from", plan.config.model.init_from, beside="given with --model")
        return
    family, why = fitting.family_of(plan.request)
    yield Line("family", family, beside=why)
    larger = fitting.PRESETS[: fitting.PRESETS.index(fit.preset)]
    if fit.preset == fitting.PRESETS[-1]:
        reason = "the smallest; the text or the time is not enough for a larger one"
    elif not fit.is_enough:
        reason = "the largest for which the text and the time are enough"
    else:
        each = f"{fitting.TOKENS_PER_WEIGHT} tokens for each of its weights"
        reason = f"the largest that reads {each} in the time, for which the text is enough"
        reason += f"; or {larger[-1]}" if larger else ""
    yield Line("preset", fit.preset, beside=reason)


def _read(reads: float) -> str:
    """The number of times that the text is read, in words."""
    if reads < 0.95:
        return f"about {100 * reads:.2g}% of the text, once"
    return "the text about once" if reads < 1.05 else f"the text about {reads:.2g} times"


def _summary(plan: PretrainingPlan) -> Iterator[str]:
    fit = plan.fit
    name = f"{plan.config.model.family} {fit.preset}"
    what = name if fit.preset else f"the model in {plan.config.model.init_from}"
    yield (
        f"chosen: {what}, {fit.steps:,} steps of {fit.batch_size} rows of {fit.max_length} tokens, which "
        f"read {_read(fit.reads)}"
    )
    if (why := _why_bytes(plan)) is not None:
        yield f"vocabulary: {plan.prepared.config.tokenizer.kind}; {why}"
    elif plan.prepared.unk_rate > UNKNOWN:
        yield f"warning: {unknown(plan.prepared.unk_rate)}"
    yield f"predicted: {in_words(plan.seconds)}, of {in_words(plan.budget)} asked for"
    if plan.request.device is not None:
        yield f"note: {plan.request.device}: {known_device(plan.request.device).comparison}"
        yield f"note: `bertcli prepare` comes before; here it takes {in_words(plan.prepared.seconds)}"
    if casing := _casing(plan):
        yield f"note: the vocabulary is lower-cased, {casing}; tokenizer.lowercase: false keeps the case"
    if plan.share < 1.0:
        yield f"note: {plan.share:.0%} of the text fits in the time; for all of it give more --minutes"
    if fit.ends_early:
        yield "note: the text is so little that the run ends sooner: a longer one would memorize it"
    elif plan.seconds > 1.25 * plan.budget:
        most = "vocabulary and store" if plan.seconds - fit.seconds > fit.seconds else "training"
        yield f"note: the run takes longer, most of it for {most}; give more --minutes"
    if plan.prepared.tokens < _FEW_TOKENS and fit.preset is not None:
        yield (
            f"note: {plan.prepared.tokens:,.0f} tokens are too few for a new model to learn a language; go "
            "on from a published one with --model, or give more text"
        )
    elif fit.steps < PLATEAU_STEPS and fit.preset is not None:
        yield (
            f"note: a new model takes up to {PLATEAU_STEPS} steps until it uses context, and this run "
            f"has {fit.steps:,}; give more --minutes"
        )
