"""The config of a pretraining run for a corpus and a time, with the reasons for its values."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from bertcli.advice.init.amount import Amount, measure_amount, prepared, with_bytes
from bertcli.advice.init.corpus import CorpusLook, look_at_corpus
from bertcli.advice.init.files import Found
from bertcli.advice.init.fit_pretraining import LENGTHS, fit_pretraining, start_seconds
from bertcli.advice.init.pretraining_lines import PretrainingPlan, pretraining_written
from bertcli.advice.init.written import Written
from bertcli.config.load import check_config
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.finish import MOST_UNKNOWN, UNKNOWN, unknown
from bertcli.corpus.sample import text_bytes
from bertcli.corpus.sources import Source
from bertcli.folders.lengths import trained_length
from bertcli.folders.locate import resolve_model
from bertcli.objectives.registry import MLM
from bertcli.system.errors import UserError
from bertcli.training.recipe import decide_recipe

_FEWEST_BYTES = 5_000
_MOST_PREPARING = 0.5
"""Largest share of the time for vocabulary and store; if they take longer, files are left out."""
_MOST_FILES = 50
"""Largest number of files that a config names one by one."""
_ONE_SENTENCE = 0.5
"""Largest share of documents with one sentence, which give no pairs."""


def write_pretraining(
    found: Found, output_dir: str, model: str | None, seconds: float, report: Callable[[str], None]
) -> Written:
    """The config of a pretraining run.

    Args:
        model: the folder of a model to continue from; None: a new model.
        seconds: time of the whole run.
        report: a function that takes lines for the user.

    Raises:
        UserError: the text cannot be read, is too short, or gives no store; the model is missing.
    """
    look = look_at_corpus(found)
    for line in look.notes:
        report(line)
    amount = measure_amount(found.sources, look.config)
    report(f"found: {amount.line()}, language {look.config.language}")
    if amount.text_bytes < _FEWEST_BYTES:
        raise UserError(
            f"{', '.join(found.names)}: {amount.text_bytes:,.0f} bytes of text are too few to train on; give "
            "some pages or more"
        )
    objective, why = _objective(look, amount)
    config, whole = _start(look, amount, output_dir, model=model, objective=objective), amount
    started = start_seconds("bertcli.training.pretraining")
    with ExitStack() as scratch:
        ready = scratch.enter_context(prepared(config, found.sources, amount))
        sources = _that_fit(found.sources, _MOST_PREPARING * seconds / ready.seconds)
        if len(sources) < len(found.sources):  # the text is now another, so everything is measured again
            names = [str(source.path) for source in sources]
            look = replace(look, config=with_values(look.config, {"files": names}))
            amount = measure_amount(sources, look.config)
            config = _start(look, amount, output_dir, model=model, objective=objective)
            ready = scratch.enter_context(prepared(config, sources, amount))
        if ready.unk_rate >= MOST_UNKNOWN:
            raise UserError(
                f"{unknown(ready.unk_rate)}. Leave --model {model} out for a new model, whose vocabulary "
                "reads this text, or name a model that was trained on such text"
            )
        report(f"measured: start {started:.1f} s, vocabulary and store {ready.seconds:.0f} s")
        left = max(0.0, seconds - started - ready.seconds)
        longest = _longest(ready.tokens, amount, model)
        fit = fit_pretraining(ready, left, longest, report=report)
    plan = PretrainingPlan(
        look=look,
        amount=amount,
        share=amount.text_bytes / whole.text_bytes,
        longest=longest,
        objective=objective,
        objective_comment=why,
        config=config,
        prepared=ready,
        fit=fit,
        started=started,
        budget=seconds,
    )
    written = pretraining_written(plan)
    check_config(PretrainConfig, written.value, "the config")
    return written


def _that_fit(sources: Sequence[Source], share: float) -> Sequence[Source]:
    """Evenly chosen files with at most this share of the bytes, but two or more; all files if the share is 1
    or more, or if a config cannot name so many."""
    kept, files = max(2, int(share * len(sources))), len(sources)
    if kept >= files or kept > _MOST_FILES:
        return sources
    most = share * text_bytes(sources)
    chosen = sources
    while kept >= 2 and text_bytes(chosen) > most:
        chosen = [sources[(2 * number + 1) * files // (2 * kept)] for number in range(kept)]
        kept -= 1
    return chosen


def _objective(look: CorpusLook, amount: Amount) -> tuple[str | None, str]:
    """The objective `mlm` and the reason, if the text gives no sentence pairs; None: auto decides."""
    if not look.has_documents or amount.documents < 2:
        why = "one document, or several of which nothing tells the ends: there are no sentence pairs"
        return MLM.name, why
    if amount.one_sentence > _ONE_SENTENCE:
        return MLM.name, f"{amount.one_sentence:.0%} of the documents have one sentence, and give no pairs"
    return None, ""


def _start(
    look: CorpusLook, amount: Amount, output_dir: str, model: str | None, objective: str | None
) -> PretrainConfig:
    """The config with kind and size of the vocabulary, before model, rows and steps are chosen."""
    value: dict[str, Any] = {"output_dir": output_dir, "corpus": look.config.model_dump()}
    if objective is not None:
        value["data"] = {"objective": objective}
    if model is not None:
        value["model"] = {"init_from": model}
    config = check_config(PretrainConfig, value, "the config")
    if model is not None:
        return config
    if amount.unread > UNKNOWN:
        return with_bytes(config)
    vocab_size = decide_recipe(config, lambda line: None).tokenizer.vocab_size
    return with_values(config, {"tokenizer": {"vocab_size": vocab_size}})


def _longest(tokens: float, amount: Amount, model: str | None) -> float:
    """Tokens of a row that documents can fill: twice their mean length, at most what a model knows."""
    longest = max(LENGTHS[-1], 2 * tokens / amount.documents)
    if model is not None:
        longest = min(longest, trained_length(resolve_model(model)) or LENGTHS[0])
    return longest
