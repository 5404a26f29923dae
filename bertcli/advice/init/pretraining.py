"""The config of a pretraining run for a corpus and a time."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from bertcli.advice.bench.probe import known_device
from bertcli.advice.init import fit_pretraining as fitting
from bertcli.advice.init.amount import Amount, Prepared, measure_amount, prepared, that_fit, with_bytes
from bertcli.advice.init.corpus import CorpusLook, look_at_corpus
from bertcli.advice.init.files import Found
from bertcli.advice.init.pretraining_lines import PretrainingPlan, pretraining_written
from bertcli.advice.init.written import Request, Written
from bertcli.config.load import check_config
from bertcli.config.model import ModelConfig
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.config.yaml_text import Line
from bertcli.corpus.finish import MOST_UNKNOWN, UNKNOWN, unknown
from bertcli.families.family import Family
from bertcli.families.registry import fresh_of
from bertcli.folders.config_file import read_architecture
from bertcli.folders.lengths import trained_length
from bertcli.folders.locate import resolve_model
from bertcli.objectives.registry import MLM
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report
from bertcli.training.recipe import decide_recipe

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
    amount = measure_amount(found.files, look.config)
    report(f"found: {amount.line()}, language {look.config.language}")
    if amount.text_bytes < _FEWEST_BYTES:
        raise UserError(
            f"{', '.join(found.names)}: {amount.text_bytes:,.0f} bytes of text are too few to train on; give "
            "some pages or more"
        )
    has_pairs = _family(request).pair_objective is not None
    objective = _objective(look, amount) if has_pairs else None
    config, whole = _start(look, amount, output_dir, request=request, objective=objective), amount
    started = fitting.start_seconds("bertcli.training.pretraining")
    with ExitStack() as scratch:
        ready = scratch.enter_context(prepared(config, found.files, amount))
        fits = 1.0 if known else _MOST_PREPARING * seconds / ready.seconds
        files = that_fit(found.files, fits)
        if len(files) < len(found.files):  # the text is now another, so everything is measured again
            names = [str(file.path) for file in files]
            look = replace(look, config=with_values(look.config, {"files": names}))
            amount = measure_amount(files, look.config)
            config = _start(look, amount, output_dir, request=request, objective=objective)
            ready = scratch.enter_context(prepared(config, files, amount))
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


def _family(request: Request) -> Family:
    """The family of the given model, or of the new one."""
    if request.model is None:
        return ModelConfig(family=fitting.family_of(request)[0]).fresh.family
    return fresh_of(read_architecture(resolve_model(request.model) / "config.json").family).family


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
    value["model"] = {"family": fitting.family_of(request)[0]}
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
