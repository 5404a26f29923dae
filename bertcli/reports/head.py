"""The first parts of a report: the state, facts and scores of each run, its corpus, and its settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import flatten
from bertcli.corpus.manifest import Manifest, SideCounts
from bertcli.reports.cards import public_name, source_lines
from bertcli.reports.run_view import RunView
from bertcli.reports.scores import Score, scores_of
from bertcli.system.terminal import duration, number, percent, short

Facts = list[tuple[str, str]]
"""Pairs of name and value, as readers see them."""
_FILES = 8
_LONGEST_PATH = 300


def corpus_facts(config: PretrainConfig, manifest: Manifest) -> Facts:
    """Documents, sentences, tokens and vocabulary, as counted in the store; the corpus is not read again."""
    train, heldout, text = manifest.train, manifest.heldout, manifest.text
    names = [Path(file.name).name for file in manifest.files[:_FILES]]
    more = len(manifest.files) - len(names)
    files = ", ".join(names) + (f" and {number(more)} more" if more > 0 else "")
    facts = [
        ("files", short(files, _LONGEST_PATH)),
        ("language", ", ".join(config.corpus.languages)),
        ("text", f"{text.bytes / 1e6:,.1f} MB, {number(text.words)} words"),
        ("to train on", _side(train)),
        ("held out", _side(heldout) if heldout.documents else "nothing (corpus.heldout_fraction)"),
        ("one sentence", f"{number(train.one_sentence_documents)} documents, which give no true pair"),
        ("vocabulary", _vocabulary(manifest, config)),
        ("pieces a word", number(manifest.tokens_per_word)),
        ("unknown", f"{percent(manifest.unk_rate)} of the tokens"),
        ("unigram entropy", f"{manifest.unigram_entropy:.3f} nats a token: a loss that needs no context"),
    ]
    if config.corpus.sources:
        facts[1:1] = [("sources", "; ".join(source_lines(config, manifest)))]
    if dropped := manifest.dropped_documents + manifest.dropped_sentences:
        facts.append(("documents and sentences left out", f"{number(dropped)} without a token"))
    return facts


def _side(side: SideCounts) -> str:
    counts = {"documents": side.documents, "sentences": side.sentences, "tokens": side.tokens}
    return ", ".join(f"{number(count)} {what}" for what, count in counts.items())


def _vocabulary(manifest: Manifest, config: PretrainConfig) -> str:
    """The size and kind of the vocabulary; the config does not say the kind and case of a given tokenizer."""
    given = config.tokenizer.path is not None or config.model.init_from is not None
    lower = "lower-cased" if config.tokenizer.lowercase is True else "cased"
    kind = "of a given tokenizer" if given else f"{config.tokenizer.kind}, {lower}"
    return f"{number(manifest.vocab_size)} entries, {kind}"


_LONGEST_VALUE = 120
"""Largest number of characters of a value."""
_OF_THE_RUN = ("output_dir", "corpus.store", "seeds", "fold")
"""Keys whose differences say nothing about what was learned."""


@dataclass(frozen=True)
class Setting:
    """A key of the configs, and its value in each run."""

    key: str
    values: Sequence[str]
    differs: bool


def recipe_of(views: Sequence[RunView]) -> list[Setting]:
    """The settings of the effective configs, as the runs wrote them."""
    flat = [flatten(view.config.model_dump(mode="json")) for view in views]
    settings = []
    for key in dict.fromkeys(key for each in flat for key in each):
        values = [each.get(key) for each in flat]
        differs = any(value != values[0] for value in values) and key not in _OF_THE_RUN
        settings.append(Setting(key, [_shown(value) for value in values], differs))
    return settings


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return short(", ".join(map(_shown, value)), _LONGEST_VALUE)
    return short(f"{value:g}" if isinstance(value, float) else str(value), _LONGEST_VALUE)


_LONGEST = 160
_WORDS = ("verdict: ", "warning: ")
"""Words that begin the first line of a verdict."""


@dataclass(frozen=True)
class Said:
    """A line at the end of a run. `word`: verdict or warning; empty for the lines after it."""

    word: str
    text: str


@dataclass(frozen=True)
class Head:
    """The head of a run.

    Attributes:
        what: a sentence on what the run is.
        facts: facts on how it was trained.
        verdict: the lines at its end; for several runs, the verdict of each.
        scores: the scores of the model that it keeps; for several runs, their means.
    """

    view: RunView
    what: str
    verdict: Sequence[Said]
    facts: Facts
    scores: list[Score]

    @property
    def score_values(self) -> Mapping[str, str]:
        """Key of a score -> its value."""
        return {score.key: score.value for score in self.scores}


def head_of(view: RunView) -> Head:
    """The head of a run."""
    return Head(view, _what(view), list(_verdict(view)), facts=_facts(view), scores=scores_of(view))


def _what(view: RunView) -> str:
    config = view.config
    if isinstance(config, PretrainConfig):
        layers, hidden, _, _ = config.model.sizes()
        files = ", ".join(public_name(file) for file in config.corpus.all_files)
        family = config.model.fresh.family.a_name
        source = config.model.init_from
        begun = f", from {public_name(source)}" if source else ""
        model = f"{family[0].upper()}{family[1:]} of {layers} layers × {hidden}{begun}{_taught_by(config)}"
        return f"{model}: {config.data.objective} on {short(files, _LONGEST)}"
    task = config.task
    data = ", ".join(Path(name).name for name in (task.train, task.dev) if name is not None)
    model = public_name(config.model) + _taught_by(config)
    return f"{task.type.capitalize()} with {model} on {short(data, _LONGEST)}"


def _taught_by(config: PretrainConfig | FinetuneConfig) -> str:
    return f" (taught by {public_name(config.distillation.teacher)})" if config.distillation else ""


def _verdict(view: RunView) -> Iterator[Said]:
    for part in view.parts:
        if part.verdict is None or part.state.word != "finished":
            continue
        before = f"{part.name}: " if view.several else ""
        for line in part.verdict.lines[: 1 if view.several else None]:
            word = next((word for word in _WORDS if line.startswith(word)), "")
            text = line.removeprefix(word)
            yield Said(word.strip(": "), before + (text if before else text[:1].upper() + text[1:]))


def _facts(view: RunView) -> Facts:
    training = view.parts[0].config.training
    last = [part.rows[-1] for part in view.parts if part.rows]
    trained = [rows for part in view.parts if (rows := part.split("train"))]
    speeds = [speed for rows in trained for row in rows if (speed := row.get("tokens_per_second"))]
    skipped = sum(rows[-1].get("skipped_steps", 0) for rows in trained)
    facts = [("device", f"{training.device}, {training.precision}")]
    if last:
        facts.append(("time in training", duration(sum(row.get("seconds") or 0 for row in last))))
        facts.append(("tokens read", number(sum(row.get("tokens") or 0 for row in last))))
    if speeds:  # the median of the logged steps
        facts.append(("speed", f"{median(speeds):,.0f} tokens/s"))
    if skipped:
        facts.append(("skipped steps", f"{number(skipped)}, whose loss or gradient was not finite"))
    return facts
