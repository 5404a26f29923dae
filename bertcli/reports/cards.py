"""Model cards for publication, of pretrained and fine-tuned models; they show no local paths."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import PretrainRecipe
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import shown
from bertcli.config.yaml_text import yaml_text
from bertcli.corpus.manifest import Manifest
from bertcli.corpus.token_store import OpenStore
from bertcli.families.family import Family
from bertcli.families.registry import FAMILIES
from bertcli.folders.locate import GENERATOR
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import LanguageModel
from bertcli.objectives.base import Reference, perplexity
from bertcli.objectives.learner import learner_of
from bertcli.objectives.registry import OBJECTIVES
from bertcli.reports.page import ENVIRONMENT
from bertcli.tasks.data import LabeledData
from bertcli.tasks.verdict import Verdict
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.scores import Scores

_MARKUP = re.compile(r"[\\`*{}\[\]<>|~&$!#]|(?<![^\W_])_|_(?![^\W_])")
"""Characters of Markdown that are escaped; an underscore within a word is not markup."""
_HUB_CACHE = "models--"


def front_matter(values: Mapping[str, Any]) -> str:
    """The YAML block of `values` between `---` lines, which model hubs read."""
    return f"---\n{yaml_text(dict(values), flow=None)}---"


def _on_hubs(family: Family, pipeline: str | None) -> dict[str, Any]:
    """The keys by which model hubs find and load the model."""
    tags = [family.model_type, "bertcli"]
    return {"library_name": "transformers", "pipeline_tag": pipeline, "tags": tags}


def plain(text: str) -> str:
    """The text on one line, escaped so that Markdown shows it unchanged."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return _MARKUP.sub(r"\\\g<0>", " ".join(printable.split()))


def public_name(path: str) -> str:
    """The name of a file or folder in a card: a relative path as given, else only the last part.

    A model in the cache of the hub is named by its id. The `model` of a run also has the name of the run.
    """
    given = Path(path)
    cached = [part for part in given.parts if part.startswith(_HUB_CACHE)]
    if cached:
        return cached[0].removeprefix(_HUB_CACHE).replace("--", "/")
    if not given.is_absolute() and not path.startswith("~") and ".." not in given.parts:
        return path
    return f"{given.parent.name}/{given.name}" if given.name == "model" else given.name


# Markdown needs other escapes than HTML; `plain` makes them, and removes control characters.
_MARKDOWN = ENVIRONMENT.overlay(autoescape=False, finalize=None, keep_trailing_newline=True)
_MARKDOWN.filters = _MARKDOWN.filters | {"plain": plain, "public_name": public_name, "as": format}


def _card(template: str, head: Mapping[str, Any], **values: Any) -> str:
    """The Markdown of a template, with `head` as front matter."""
    made = _MARKDOWN.get_template(template)
    return made.render(front_matter=front_matter(head), perplexity=perplexity, **values)


_MASKED = {"token": "", "word": " (whole words)", "span": " (one to three words together)"}


def model_card(
    config: PretrainRecipe,
    store: OpenStore,
    model: LanguageModel,
    references: Sequence[Reference],
    scores: Scores | None,
    lines: Sequence[str],
) -> str:
    """The card, as Markdown with front matter for model hubs. `lines`: what the run said at its end."""
    sizes, tokenizer, source = model.architecture, store.tokenizer, config.model.init_from
    family, objective = FAMILIES[sizes.family], OBJECTIVES[config.data.objective]
    # A text to fill in: a sentence of the corpus may be private.
    languages = config.corpus.languages
    front = {"language": languages[0] if len(languages) == 1 else languages}
    text = "The {} was dark." if languages == ["en"] else "... {} ..."
    begun = plain(public_name(source)) if source else "random weights"
    if config.distillation is not None and not source:
        begun = f"layers of its teacher {plain(public_name(config.distillation.teacher))}, where sizes agree"
    return _card(
        "model_card.md.j2",
        {**front, **_on_hubs(family, objective.pipeline)},
        title=f"{family.a_name[0].upper()}{family.a_name[1:]} of {sizes.layers} layers x {sizes.hidden}",
        config=config,
        training=config.training,
        objective=objective,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocab_size=sizes.vocab_size,
        tokenizer=tokenizer,
        pieces="WordPieces" if tokenizer.kind == "WordPiece" else f"{tokenizer.kind} pieces",
        manifest=store.manifest,
        files=", ".join(plain(public_name(file)) for file in config.corpus.all_files),
        sources=source_lines(config, store.manifest),
        begun=begun,
        **_recipe(config, tokenizer),
        own_rows=learner_of(objective.name).card_rows(config, sizes).splitlines(),
        references=references,
        scores=scores,
        lines=lines,
        folder=GENERATOR if objective.generates else ".",
        text=text.format(tokenizer.mask_token),
        usage=family.classes[objective.kind],
    )


def source_lines(config: PretrainConfig, manifest: Manifest) -> list[str]:
    """The size of each source and its share at the end of the run; none for a corpus of files alone."""
    if not config.corpus.sources:
        return []
    shares = zip(config.corpus.source_names, manifest.sources, manifest.shares(config.corpus), strict=True)
    return [
        f"{name}: {source.train.tokens:,} tokens, {share:.1%} of the rows" for name, source, share in shares
    ]


def _recipe(config: PretrainRecipe, tokenizer: Tokenizer) -> dict[str, str]:
    """What the card says of rows, of the learning rate's schedule, and of masks."""
    data, training = config.data, config.training
    split = zip(data.mask_split, (tokenizer.mask_token, "a random token", "unchanged"), strict=True)
    masks = f"{shown(data.mask_rate, '.0%')} of the tokens{_MASKED[data.masking]}, "
    masks += ", ".join(f"{share:.0%} {what}" for share, what in split)
    rows = f"{shown(training.batch_size)} rows of at most {data.max_length} tokens"
    schedule = f"{training.schedule}, {training.warmup_steps} steps of warm-up"
    schedule += f", falling in the last {training.decay_share:.0%}" * (training.schedule == "stable-decay")
    return {"rows": rows, "schedule": schedule, "masks": masks}


_LISTED = 50
"""Largest number of labels in the card."""


def task_card(
    config: FinetuneConfig,
    architecture: Architecture,
    data: LabeledData,
    scores: Scores | None,
    verdict: Verdict | None,
    folds: int = 0,
) -> str:
    """The card, as Markdown with the front matter that model hubs read.

    `folds`: the number of folds whose models gave the scores; 0: this model gave them.
    """
    task, family = config.task, FAMILIES[architecture.family]
    train, dev = plain(Path(task.train).name), "none"
    if data.dev is not None:
        source = f"of {train}, split off" if task.dev is None else f"of {plain(Path(task.dev).name)}"
        dev = f"{len(data.dev.examples):,} rows {source}"
    elif folds:
        dev = f"the same rows, by {folds} models, each of which answered the fold that it did not learn from"
    more = [f"and {len(data.task.labels) - _LISTED:,} more"] if len(data.task.labels) > _LISTED else []
    sizes = f"{architecture.layers} layers x {architecture.hidden}"
    return _card(
        "task_card.md.j2",
        _on_hubs(family, data.task.pipeline_tag),
        title=f"{task.type.capitalize()} by {family.a_name} of {sizes}",
        config=config,
        training=config.training,
        data=data,
        train=train,
        dev=dev,
        names=", ".join([*map(plain, data.task.labels[:_LISTED]), *more]),
        scores=scores,
        verdict=verdict,
        folds=folds,
    )
