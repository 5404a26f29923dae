"""The README.md of a pretrained model: its corpus, recipe, scores and use."""

from __future__ import annotations

from collections.abc import Sequence

from bertcli.cards.markdown import front_matter, plain, public_name
from bertcli.config.ramp import shown
from bertcli.config.schema import PretrainConfig
from bertcli.evaluation.evaluate import Scores
from bertcli.families.registry import FAMILIES
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.replaced_tokens import ReplacedTokenModel
from bertcli.store.token_store import OpenStore
from bertcli.tasks.reference import Reference, perplexity

_MASKED = {"token": "", "word": " (whole words)", "span": " (one to three words together)"}


def model_card(
    config: PretrainConfig,
    store: OpenStore,
    model: PretrainingModel | ReplacedTokenModel,
    references: Sequence[Reference],
    scores: Scores | None,
    lines: Sequence[str],
) -> str:
    """The card, as Markdown with the front matter that model hubs read; `lines`: what the run said at its
    end."""
    sizes = model.architecture
    parameters = sum(parameter.numel() for parameter in model.parameters())
    family = FAMILIES[sizes.family]
    objective = config.data.objective
    usage = family.classes[{"mlm": "masked-lm", "rtd": "discriminator"}.get(objective, "pretraining")]
    kind = store.tokenizer.kind
    pieces = "WordPieces" if kind == "WordPiece" else f"{kind} pieces"
    head = front_matter(
        {
            "language": config.corpus.language,
            "library_name": "transformers",
            "pipeline_tag": "feature-extraction" if objective == "rtd" else "fill-mask",
            "tags": [family.model_type, "bertcli"],
        }
    )
    return f"""{head}

# {family.a_name[0].upper()}{family.a_name[1:]} of {sizes.layers} layers x {sizes.hidden}

Pretrained with bertcli: {config.data.objective}, {parameters:,} parameters, a vocabulary of
{sizes.vocab_size:,} {pieces} ({"lower-cased" if store.tokenizer.lowercase else "cased"}).

{_corpus(config, store)}

{_recipe(config, store, model)}

The complete config is in the run folder's `config.yaml`.

## Scores on held-out documents

{_scores(scores, references)}

{chr(10).join(f"- {plain(line)}" for line in lines)}

## Use

```sh
bertcli predict-mask {"generator" if objective == "rtd" else "."} {_to_fill(config, store)}
```

```python
from transformers import AutoTokenizer, {usage}

tokenizer, model = AutoTokenizer.from_pretrained("."), {usage}.from_pretrained(".")
```

The model was trained on this corpus alone, and reproduces its content and its prejudices.
"""


def _to_fill(config: PretrainConfig, store: OpenStore) -> str:
    """An example for English alone; a sentence of the corpus may be private."""
    mask = store.tokenizer.mask_token
    return f'"The {mask} was dark."' if config.corpus.language == "en" else f'"... {mask} ..."'


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


def _recipe(config: PretrainConfig, store: OpenStore, model: PretrainingModel | ReplacedTokenModel) -> str:
    data, training, source = config.data, config.training, config.model.init_from
    teacher = config.distillation and config.distillation.teacher
    begun = (
        f"layers of its teacher {plain(public_name(teacher))}, where sizes agree"
        if teacher
        else "random weights"
    )
    masks = f"{shown(data.mask_rate, '.0%')} of the tokens{_MASKED[data.masking]}, "
    masks += _split(data.mask_split, store.tokenizer.mask_token)
    rows = f"{shown(training.batch_size)} rows of at most {data.max_length} tokens"
    rows += f", {data.short_length} in the first {data.short_steps:,}" if data.short_steps else ""
    schedule = f"{training.schedule}, {training.warmup_steps} steps of warm-up"
    schedule += f", falling in the last {training.decay_share:.0%}" * (training.schedule == "stable-decay")
    return f"""## Recipe

| | |
|---|---|
| started from | {plain(public_name(source)) if source else begun} |
| steps | {training.steps or 0:,} of {rows} |
| learning rate | {training.learning_rate:g}, {schedule} |
| AdamW | betas {training.betas[0]:g} and {training.betas[1]:g}, weight decay {training.weight_decay:g} |
| gradient clipping | norm {training.max_grad_norm:g} |
| dropout | {config.model.dropout:g} |
| masks | {masks} |
{_of_objective(config, model)}| precision | {training.precision} |
| seed | {config.seed} |"""


def _of_objective(config: PretrainConfig, model: PretrainingModel | ReplacedTokenModel) -> str:
    """Rows of the table that only some objectives have, a line each."""
    rows = ""
    if isinstance(model, ReplacedTokenModel):
        sizes = model.generator.architecture
        rows += f"| generator | {sizes.layers} layers x {sizes.hidden} |\n"
        rows += f"| weight of replaced tokens | {config.training.rtd_weight:g} |\n"
    if config.distillation is not None:
        words, true_words, hidden = config.distillation.weights
        rows += f"| temperature of the teacher | {config.distillation.temperature:g} |\n"
        rows += f"| weights | its words {words:g}, true words {true_words:g}, hidden states {hidden:g} |\n"
    return rows


def _split(split: tuple[float, float, float], mask: str) -> str:
    return "{:.0%} {}, {:.0%} a random token, {:.0%} unchanged".format(split[0], mask, *split[1:])


def _scores(scores: Scores | None, references: Sequence[Reference]) -> str:
    if scores is None:
        return "None were measured: no documents were held out."
    lines = ["| objective | loss | accuracy | perplexity | accuracy by chance |", "|---|---|---|---|---|"]
    for each in references:
        if each.term in scores.losses:  # held-out text may have no pairs
            loss, accuracy = scores.losses[each.term], scores.accuracies[each.term]
            words = f"{perplexity(loss):.1f}" if each.predicts_words else ""
            known = scores.metrics.get(f"{each.term}_replaced")
            majority = each.chance_accuracy if known is None else 1 - known
            chance = "" if majority is None else f"{majority:.1%}"
            lines.append(f"| {each.term} | {loss:.3f} | {accuracy:.1%} | {words} | {chance} |")
    return "\n".join(lines)
