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
from bertcli.corpus.token_store import OpenStore
from bertcli.families.family import Family
from bertcli.families.registry import FAMILIES
from bertcli.folders.locate import GENERATOR
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import LanguageModel
from bertcli.objectives.base import Reference, perplexity
from bertcli.objectives.learner import learner_of
from bertcli.objectives.registry import OBJECTIVES
from bertcli.tasks.data import LabeledData
from bertcli.tasks.verdict import Verdict
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
    sizes = model.architecture
    parameters = sum(parameter.numel() for parameter in model.parameters())
    family = FAMILIES[sizes.family]
    objective = OBJECTIVES[config.data.objective]
    usage = family.classes[objective.kind]
    kind = store.tokenizer.kind
    pieces = "WordPieces" if kind == "WordPiece" else f"{kind} pieces"
    # A text to fill in: a sentence of the corpus may be private.
    text = "The {} was dark." if config.corpus.language == "en" else "... {} ..."
    head = {"language": config.corpus.language, **_on_hubs(family, objective.pipeline)}
    return f"""{front_matter(head)}

# {family.a_name[0].upper()}{family.a_name[1:]} of {sizes.layers} layers x {sizes.hidden}

Pretrained with bertcli: {objective.name}, {parameters:,} parameters, a vocabulary of
{sizes.vocab_size:,} {pieces} ({"lower-cased" if store.tokenizer.lowercase else "cased"}).

{_corpus(config, store)}

{_recipe(config, store, model)}

The complete config is in the run folder's `config.yaml`.

## Scores on held-out documents

{_scores(scores, references)}

{chr(10).join(f"- {plain(line)}" for line in lines)}

## Use

```sh
bertcli predict-mask {GENERATOR if objective.generates else "."} "{text.format(store.tokenizer.mask_token)}"
```

```python
from transformers import AutoTokenizer, {usage}

tokenizer, model = AutoTokenizer.from_pretrained("."), {usage}.from_pretrained(".")
```

The model was trained on this corpus alone, and reproduces its content and its prejudices.
"""


def _corpus(config: PretrainConfig, store: OpenStore) -> str:
    manifest = store.manifest
    return f"""## Corpus

| | |
|---|---|
| files | {", ".join(plain(public_name(file)) for file in config.corpus.files)} |
| documents | {manifest.train.documents:,} to train on, {manifest.heldout.documents:,} held out |
| sentences | {manifest.train.sentences:,} |
| tokens | {manifest.train.tokens:,} |
| unigram entropy | {manifest.unigram_entropy:.3f} nats a token |"""


def _recipe(config: PretrainRecipe, store: OpenStore, model: LanguageModel) -> str:
    data, training, source = config.data, config.training, config.model.init_from
    begun = plain(public_name(source)) if source else "random weights"
    if config.distillation is not None and not source:
        begun = f"layers of its teacher {plain(public_name(config.distillation.teacher))}, where sizes agree"
    split = zip(data.mask_split, (store.tokenizer.mask_token, "a random token", "unchanged"), strict=True)
    masks = f"{shown(data.mask_rate, '.0%')} of the tokens{_MASKED[data.masking]}, "
    masks += ", ".join(f"{share:.0%} {what}" for share, what in split)
    rows = f"{shown(training.batch_size)} rows of at most {data.max_length} tokens"
    rows += f", {data.short_length} in the first {data.short_steps:,}" if data.short_steps else ""
    schedule = f"{training.schedule}, {training.warmup_steps} steps of warm-up"
    schedule += f", falling in the last {training.decay_share:.0%}" * (training.schedule == "stable-decay")
    return f"""## Recipe

| | |
|---|---|
| started from | {begun} |
| steps | {training.steps or 0:,} of {rows} |
| learning rate | {training.learning_rate:g}, {schedule} |
| AdamW | betas {training.betas[0]:g} and {training.betas[1]:g}, weight decay {training.weight_decay:g} |
| gradient clipping | norm {training.max_grad_norm:g} |
| dropout | {config.model.dropout:g} |
| masks | {masks} |
{_of_objective(config, model)}| precision | {training.precision} |
| seed | {config.seed} |"""


def _of_objective(config: PretrainConfig, model: LanguageModel) -> str:
    """The rows of the table that only some runs have, one line each."""
    rows = learner_of(config.data.objective).card_rows(config, model.architecture)
    if config.distillation is not None:
        words, true_words, hidden = config.distillation.weights
        rows += f"| temperature of the teacher | {config.distillation.temperature:g} |\n"
        rows += f"| weights | its words {words:g}, true words {true_words:g}, hidden states {hidden:g} |\n"
    return rows


def _scores(scores: Scores | None, references: Sequence[Reference]) -> str:
    if scores is None:
        return "None were measured: no documents were held out."
    lines = ["| objective | loss | accuracy | perplexity | accuracy by chance |", "|---|---|---|---|---|"]
    for each in references:
        if each.term in scores.losses:  # held-out text may have no pairs
            loss, accuracy = scores.losses[each.term], scores.accuracies[each.term]
            words = f"{perplexity(loss):.1f}" if each.predicts_words else ""
            _, majority = each.by_chance(scores.metrics)
            chance = "" if majority is None else f"{majority:.1%}"
            lines.append(f"| {each.term} | {loss:.3f} | {accuracy:.1%} | {words} | {chance} |")
    return "\n".join(lines)


_LISTED = 50
"""Largest number of labels in the card."""


def task_card(
    config: FinetuneConfig,
    architecture: Architecture,
    data: LabeledData,
    scores: Scores | None,
    verdict: Verdict | None,
) -> str:
    """The card, as Markdown with the front matter that model hubs read."""
    task, training, family = config.task, config.training, FAMILIES[architecture.family]
    train, dev = plain(Path(task.train).name), "none"
    if data.dev is not None:
        source = f"of {train}, split off" if task.dev is None else f"of {plain(Path(task.dev).name)}"
        dev = f"{len(data.dev.examples):,} rows {source}"
    more = [f"and {len(data.task.labels) - _LISTED:,} more"] if len(data.task.labels) > _LISTED else []
    names = ", ".join([*map(plain, data.task.labels[:_LISTED]), *more])
    labels = f"| labels | {names} |\n" if names else ""
    return f"""{front_matter(_on_hubs(family, data.task.pipeline_tag))}

# {task.type.capitalize()} by {family.a_name} of {architecture.layers} layers x {architecture.hidden}

Fine-tuned with bertcli from {plain(public_name(config.model))}.

## Data

| | |
|---|---|
| trained on | {len(data.train.examples):,} rows of {train} |
| evaluated on | {dev} |
{labels}
## Recipe

| | |
|---|---|
| epochs | {training.epochs:g}, {training.batch_size} rows a step, at most {task.max_length} tokens a row |
| learning rate | {training.learning_rate:g}, {training.schedule}, warm-up over {training.warmup_ratio:.0%} |
| AdamW | betas {training.betas[0]:g} and {training.betas[1]:g}, weight decay {training.weight_decay:g} |
| precision | {training.precision} |
{_student(config)}| seed | {config.training_seed} |

The complete config is in the run folder's `config.yaml`.

## Scores on the dev data

{_task_scores(scores, verdict)}

## Use

```sh
bertcli predict . TEXT
bertcli predict . --input FILE
```
"""


def _student(config: FinetuneConfig) -> str:
    """The rows of the table about kept layers and a teacher, one line each."""
    kept, taught = config.training.keep_layers, config.distillation
    rows = f"| layers | {kept} of the model's |\n" if kept else ""
    if taught is not None:
        answers, labels = taught.weights
        rows += f"| teacher | {plain(public_name(taught.teacher))}, temperature {taught.temperature:g}; "
        rows += f"weights: its answers {answers:g}, labels {labels:g} |\n"
    return rows


def _task_scores(scores: Scores | None, verdict: Verdict | None) -> str:
    if scores is None or verdict is None:
        return "None were measured: there was no dev data."
    rows = [f"| {plain(scores.title(name))} | {value:.4f} |" for name, value in scores.numbers.items()]
    beside = plain(f"{verdict.text[0].upper()}{verdict.text[1:]}.")
    return "\n".join([beside, "", "| metric | value |", "|---|---|", f"| loss | {scores.loss:.4f} |", *rows])
