"""The config of a pretraining run for a corpus and a time, with the reasons for its values."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from bertcli.advice.bench.devices import known_device
from bertcli.advice.init import fit_pretraining as fitting
from bertcli.advice.init.amount import Amount, Prepared, measure_amount, prepared, that_fit, with_bytes
from bertcli.advice.init.corpus import CorpusLook, look_at_corpus
from bertcli.advice.init.files import Found
from bertcli.advice.init.written import Request, Written, in_words, predicted
from bertcli.config.load import check_config
from bertcli.config.model import ModelConfig
from bertcli.config.run import with_values
from bertcli.config.schema import CorpusConfig, PretrainConfig
from bertcli.config.yaml_text import Block, Line
from bertcli.corpus.finish import MOST_UNKNOWN, UNKNOWN, unknown
from bertcli.folders.lengths import trained_length
from bertcli.folders.locate import resolve_model
from bertcli.objectives.registry import MLM
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report
from bertcli.tokenizer.normalize import casing_rules
from bertcli.training.recipe import ROWS_TO_LOOK_AROUND, decide_recipe

_FEWEST_BYTES = 5_000
_MOST_PREPARING = 0.5
"""Largest share of the time for vocabulary and store; if they take longer, files are left out."""
_ONE_SENTENCE = 0.5
"""Largest share of documents with one sentence, which give no pairs."""


def write_pretraining(found: Found, output_dir: str, request: Request, report: Report) -> Written:
    """The config of a pretraining run. `report` takes lines for the user.

    Raises:
        UserError: the text cannot be read, is too short, or gives no store; the model is missing.
    """
    known = None if request.device is None else known_device(request.device)
    look, seconds = look_at_corpus(found), 60 * request.minutes
    for line in look.notes:
        report(line)
    amount = measure_amount(found.sources, look.config)
    report(f"found: {amount.line()}, language {look.config.language}")
    if amount.text_bytes < _FEWEST_BYTES:
        raise UserError(
            f"{', '.join(found.names)}: {amount.text_bytes:,.0f} bytes of text are too few to train on; give "
            "some pages or more"
        )
    has_pairs = ModelConfig(family=request.family).fresh.family.pair_objective is not None
    objective = _objective(look, amount) if has_pairs else None
    config, whole = _start(look, amount, output_dir, request=request, objective=objective), amount
    started = fitting.start_seconds("bertcli.training.pretraining")
    with ExitStack() as scratch:
        ready = scratch.enter_context(prepared(config, found.sources, amount))
        fits = 1.0 if known else _MOST_PREPARING * seconds / ready.seconds
        sources = that_fit(found.sources, fits)
        if len(sources) < len(found.sources):  # the text is now another, so everything is measured again
            names = [str(source.path) for source in sources]
            look = replace(look, config=with_values(look.config, {"files": names}))
            amount = measure_amount(sources, look.config)
            config = _start(look, amount, output_dir, request=request, objective=objective)
            ready = scratch.enter_context(prepared(config, sources, amount))
        if ready.unk_rate >= MOST_UNKNOWN:
            raise UserError(
                f"{unknown(ready.unk_rate)}. Leave --model {request.model} out for a new model, whose "
                "vocabulary reads this text, or name a model that was trained on such text"
            )
        report(f"measured: start {started:.1f} s, vocabulary and store {ready.seconds:.0f} s")
        left = seconds if known else max(0.0, seconds - started - ready.seconds)
        longest = _longest(ready, amount)
        fit = fitting.fit_pretraining(ready, left, longest, report=report, known=known)
    plan = PretrainingPlan(
        look=look,
        amount=amount,
        share=amount.text_bytes / whole.text_bytes,
        longest=longest,
        objective=objective,
        config=config,
        prepared=ready,
        fit=fit,
        started=started,
        request=request,
    )
    return pretraining_written(plan)


def _objective(look: CorpusLook, amount: Amount) -> Line | None:
    """The objective `mlm` with the reason, if the text gives no sentence pairs; None: auto decides."""
    if not look.has_documents or amount.documents < 2:
        why = "one document, or several of which nothing tells the ends: there are no sentence pairs"
    elif amount.one_sentence > _ONE_SENTENCE:
        why = f"{amount.one_sentence:.0%} of the documents have one sentence, and give no pairs"
    else:
        return None
    return Line("objective", MLM.name, beside=why)


def _start(
    look: CorpusLook, amount: Amount, output_dir: str, request: Request, objective: Line | None
) -> PretrainConfig:
    """The config with kind and size of the vocabulary, before model, rows and steps are chosen."""
    value: dict[str, Any] = {"output_dir": output_dir, "corpus": look.config.model_dump()}
    if objective is not None:
        value["data"] = {"objective": objective.value}
    if request.model is not None:
        value["model"] = {"init_from": request.model}
        return check_config(PretrainConfig, value, "the config")
    value["model"] = {"family": request.family}
    config = check_config(PretrainConfig, value, "the config")
    if amount.unread > UNKNOWN:
        return with_bytes(config)
    vocab_size = decide_recipe(config, lambda line: None).tokenizer.vocab_size
    return with_values(config, {"tokenizer": {"vocab_size": vocab_size}})


def _longest(ready: Prepared, amount: Amount) -> float:
    """Tokens of a row that documents can fill: twice their mean length, at most what a given model knows."""
    longest = max(fitting.LENGTHS[-1], 2 * ready.tokens / amount.documents)
    if (model := ready.config.model.init_from) is not None:
        longest = min(longest, trained_length(resolve_model(model)) or fitting.LENGTHS[0])
    return longest


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
    can_be_longer = fit.max_length < fitting.LENGTHS[0] <= plan.longest
    longer = f"; or {fitting.LENGTHS[0]}, in about twice the time" * can_be_longer
    length = Line("max_length", fit.max_length, beside=f"tokens of a row{longer}")
    by_auto = fit.batch_size <= fitting.AUTO_ROWS
    steps = (
        f"of {fit.batch_size:,} rows{', as auto decides' * by_auto}: {fit.rows:,} rows, {_read(fit.reads)}. "
        f"{in_words(fit.seconds)} at {fit.rows_per_second:,.0f} full rows a second ({how})"
    )
    training = [Line("steps", fit.steps, beside=steps)]
    rows = Line("batch_size", fit.batch_size, beside="rows of a step, for so long a run")
    lines: list[Line | Block] = [
        Line("output_dir", plan.config.output_dir),
        Block("corpus", list(_corpus(plan))),
        *_tokenizer(plan),
        Block("data", [plan.objective, length] if plan.objective else [length]),
        Block("model", list(_model(plan))),
        Block("training", training if by_auto else [*training, rows]),
        Block("evaluation", [Line("every_steps", max(1, fit.steps // fitting.EVALUATIONS))]),
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
    if unread > UNKNOWN:
        return f"{unread:.0%} of the text is in words of over 100 characters, too long for WordPiece"
    if unknown_before:
        return f"with WordPiece, the usual kind, {unknown_before:.1%} of the tokens are unknown"
    return None


def _model(plan: PretrainingPlan) -> Iterator[Line]:
    fit = plan.fit
    if fit.preset is None:
        yield Line("init_from", plan.config.model.init_from, beside="given with --model")
        return
    if plan.request.family is not None:
        yield Line("family", plan.request.family, beside="given with --family")
    larger = fitting.PRESETS[: fitting.PRESETS.index(fit.preset)]
    if fit.rows < fitting.ROWS and not fit.ends_early:
        reason = f"the smallest; a larger one reads far fewer than {fitting.ROWS:,} rows in the time"
    elif fit.preset == fitting.PRESETS[-1]:
        reason = "the smallest; the text or the time is not enough for a larger one"
    elif fit.rows < fitting.ROWS:
        reason = "the largest for which the text and the time are enough"
    else:
        reason = f"the largest that reads {fitting.ROWS:,} rows in the time, for which the text is enough"
        reason += f"; or {larger[-1]}" if larger else ""
    yield Line("preset", fit.preset, beside=reason)


def _read(reads: float) -> str:
    """The number of times that the text is read, in words."""
    if reads < 0.95:
        return f"about {100 * reads:.2g}% of the text, once"
    return "the text about once" if reads < 1.05 else f"the text about {reads:.2g} times"


def _summary(plan: PretrainingPlan) -> Iterator[str]:
    fit = plan.fit
    name = f"{plan.request.family or 'model'} {fit.preset}"
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
