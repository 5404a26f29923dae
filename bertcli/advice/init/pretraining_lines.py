"""The lines of a pretraining config, each with its reason from what was measured."""

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.advice.init.amount import Amount, Prepared
from bertcli.advice.init.corpus import CorpusLook
from bertcli.advice.init.fit_pretraining import EVALUATIONS, LENGTHS, PRESETS, ROWS, PretrainingFit
from bertcli.advice.init.written import Written, in_words, machine
from bertcli.config.schema import CorpusConfig, PretrainConfig
from bertcli.config.yaml_text import Block, Line
from bertcli.corpus.finish import UNKNOWN, unknown
from bertcli.tokenizer.normalize import casing_rules
from bertcli.training.recipe import ROWS_TO_LOOK_AROUND

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
        objective: the objective; None: auto.
        config: the config before model, rows and steps were chosen.
        started: seconds until the command begins to work.
        budget: seconds that the run may take.
    """

    look: CorpusLook
    amount: Amount
    share: float
    longest: float
    objective: str | None
    objective_comment: str
    config: PretrainConfig
    prepared: Prepared
    fit: PretrainingFit
    started: float
    budget: float

    @property
    def seconds(self) -> float:
        """Time of the whole command."""
        return self.started + self.prepared.seconds + self.fit.seconds


def pretraining_written(plan: PretrainingPlan) -> Written:
    """The config and the lines that describe it."""
    fit = plan.fit
    where = machine(fit.speed.device, fit.speed.precision)
    head = (
        f"Predicted: {in_words(plan.seconds)}, as measured on this machine ({where}).\n"
        "A comment says why; `or` in it names what else it may be. All keys: bertcli config pretrain"
    )
    lines: list[Line | Block] = [
        Line("output_dir", plan.config.output_dir),
        Block("corpus", list(_corpus(plan))),
        *_tokenizer(plan),
        Block("data", list(_data(plan))),
        Block("model", [_model(plan)]),
        Block("training", list(_training(plan))),
        Block("evaluation", [Line("every_steps", max(1, fit.steps // EVALUATIONS))]),
        Block("checkpoint", [Line("every_steps", max(1, fit.steps // _CHECKPOINTS))]),
        Block("logging", [Line("every_steps", max(1, fit.steps // _LOGGED))]),
    ]
    return Written(lines, head, "pretrain", summary=list(_summary(plan)))


def _corpus(plan: PretrainingPlan) -> Iterator[Line]:
    comments = plan.look.comments | {"files": plan.amount.line()}
    if plan.share < 1.0:
        comments["files"] += (
            f"; {plan.share:.0%} of the text: vocabulary and store of all take too much of the time"
        )
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
        comment = (
            f"by the size of the text; vocabulary and store take about {in_words(plan.prepared.seconds)}"
        )
        lines = [Line("vocab_size", tokenizer.vocab_size, beside=comment)]
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
    if plan.amount.unread > UNKNOWN:
        return (
            f"{plan.amount.unread:.0%} of the text is in words of over 100 characters, too long for WordPiece"
        )
    if plan.prepared.unk_rate_before:
        return (
            f"with WordPiece, the usual kind, {plan.prepared.unk_rate_before:.1%} of the tokens are unknown"
        )
    return None


def _data(plan: PretrainingPlan) -> Iterator[Line]:
    if plan.objective is not None:
        yield Line("objective", plan.objective, beside=plan.objective_comment)
    can_be_longer = plan.fit.max_length < LENGTHS[0] <= plan.longest
    longer = f"; or {LENGTHS[0]}, in about twice the time" if can_be_longer else ""
    yield Line("max_length", plan.fit.max_length, beside=f"tokens of a row{longer}")


def _model(plan: PretrainingPlan) -> Line:
    fit = plan.fit
    if fit.preset is None:
        return Line("init_from", plan.config.model.init_from, beside="given with --model")
    larger = PRESETS[: PRESETS.index(fit.preset)]
    if fit.rows < ROWS and not fit.ends_early:
        reason = f"the smallest; a larger one reads far fewer than {ROWS:,} rows in the time"
    elif fit.preset == PRESETS[-1]:
        reason = "the smallest; the text or the time is not enough for a larger one"
    elif fit.rows < ROWS:
        reason = "the largest for which the text and the time are enough"
    else:
        reason = f"the largest that reads {ROWS:,} rows in the time, for which the text is enough"
        reason += f"; or {larger[-1]}" if larger else ""
    return Line("preset", fit.preset, beside=reason)


def _training(plan: PretrainingPlan) -> Iterator[Line]:
    fit = plan.fit
    comment = (
        f"of {fit.batch_size} rows, as auto decides: {fit.rows:,} rows, {_read(fit.reads)}. "
        f"{in_words(fit.seconds)} at {fit.rows_per_second:,.0f} full rows a second (measured)"
    )
    yield Line("steps", fit.steps, beside=comment)


def _read(reads: float) -> str:
    """The number of times that the text is read, in words."""
    if reads < 0.95:
        return f"about {100 * reads:.2g}% of the text, once"
    return "the text about once" if reads < 1.05 else f"the text about {reads:.2g} times"


def _summary(plan: PretrainingPlan) -> Iterator[str]:
    fit = plan.fit
    what = f"model {fit.preset}" if fit.preset else f"the model in {plan.config.model.init_from}"
    yield (
        f"chosen: {what}, {fit.steps:,} steps of {fit.batch_size} rows of {fit.max_length} tokens, which "
        f"read {_read(fit.reads)}"
    )
    if (why := _why_bytes(plan)) is not None:
        yield f"vocabulary: {plan.prepared.config.tokenizer.kind}; {why}"
    elif plan.prepared.unk_rate > UNKNOWN:
        yield f"warning: {unknown(plan.prepared.unk_rate)}"
    yield f"predicted: {in_words(plan.seconds)}, of {in_words(plan.budget)} asked for"
    if casing := _casing(plan):
        yield f"note: the vocabulary is lower-cased, {casing}; tokenizer.lowercase: false keeps the case"
    if plan.share < 1.0:
        yield f"note: {plan.share:.0%} of the text fits in the time; for all of it give more --minutes"
    if fit.ends_early:
        yield "note: the text is so little that the run ends sooner: a longer one would learn it by heart"
    elif plan.seconds > 1.25 * plan.budget:
        yield "note: the run takes longer, most of it for vocabulary and store; give more --minutes"
    if plan.prepared.tokens < _FEW_TOKENS:
        yield (
            f"note: {plan.prepared.tokens:,.0f} tokens are too few for a new model to learn a language; go "
            "on from a published one with --model, or give more text"
        )
    elif fit.rows < ROWS_TO_LOOK_AROUND and fit.preset is not None:
        yield (
            f"note: a model starts to use context after 20,000 to {ROWS_TO_LOOK_AROUND:,} rows, and this run "
            f"has {fit.rows:,}; give more --minutes"
        )
