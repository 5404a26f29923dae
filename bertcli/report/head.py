"""The head of a report: what was trained, on what, how far it is, and what the run said at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bertcli.cards.markdown import public_name
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.report.corpus import Facts
from bertcli.report.formatting import duration, number, short
from bertcli.report.run_view import RunView, State
from bertcli.report.scores import Score, scores_of

_LONGEST = 160
_WORDS = ("verdict: ", "warning: ")
"""How the first line of a verdict begins."""


@dataclass(frozen=True)
class Said:
    """A line of a run's end; `word`: verdict or warning, empty for what follows it."""

    word: str
    text: str


@dataclass(frozen=True)
class Head:
    """One run.

    Attributes:
        what: a sentence.
        facts: how it was trained.
        scores: of the model that it keeps; of several seeds their means.
    """

    name: str
    what: str
    state: State
    verdict: Sequence[Said]
    facts: Facts
    scores: Sequence[Score]

    @property
    def score_values(self) -> Mapping[str, str]:
        """Key of a score -> its value."""
        return {score.key: score.value for score in self.scores}


def head_of(view: RunView) -> Head:
    """The head of a run; of several seeds it has the verdict of each."""
    return Head(
        name=view.name,
        what=_what(view),
        state=view.state,
        verdict=list(_verdict(view)),
        facts=_facts(view),
        scores=scores_of(view),
    )


def _what(view: RunView) -> str:
    config = view.config
    if isinstance(config, PretrainConfig):
        layers, hidden, _, _ = config.model.sizes()
        files = ", ".join(public_name(file) for file in config.corpus.files)
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
        before = f"{part.name}: " if view.seeds else ""
        for line in part.verdict.lines[: 1 if view.seeds else None]:
            word = next((word for word in _WORDS if line.startswith(word)), "")
            text = line.removeprefix(word)
            yield Said(word.strip(": "), before + (text if before else text[:1].upper() + text[1:]))


def _facts(view: RunView) -> Facts:
    parts = view.parts
    training = parts[0].config.training
    last = [part.rows[-1] for part in parts if part.rows]
    speeds = [row.get("tokens_per_second") for part in parts for row in part.split("train")]
    known = [speed for speed in speeds if speed]
    skipped = sum(part.split("train")[-1].get("skipped_steps", 0) for part in parts if part.split("train"))
    facts = [("device", f"{training.device}, {training.precision}")]
    if last:
        facts.append(("time in training", duration(sum(row.get("seconds") or 0 for row in last))))
        facts.append(("tokens read", number(sum(row.get("tokens") or 0 for row in last))))
    if known:  # of the logged steps, the one in the middle
        facts.append(("speed", f"{median(known):,.0f} tokens/s"))
    if skipped:
        facts.append(("skipped steps", f"{number(skipped)}, whose loss or gradient was not finite"))
    return facts
