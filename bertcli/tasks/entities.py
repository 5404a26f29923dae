"""Tags of words -> entities, their scores by the rules of conlleval, and their places in the text."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.system.terminal import around, percent, short
from bertcli.tasks.examples import TaggedExample
from bertcli.tasks.scores import precision_recall_f1
from bertcli.tasks.shown import (
    LONGEST,
    Kind,
    Mark,
    Passage,
    Prediction,
    ShownAnswer,
    beside_texts,
    marked_pieces,
)
from bertcli.tasks.tags import Chunk, chunks

_LONGEST_TYPE = 24


def entity_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Scores of sentences of tags, in 0..1 (conlleval prints hundredths).

    `precision`, `recall` and `f1` count entities: right if words and type are exactly those of the truth.
    `accuracy` counts words; `per_type` has the three scores by type, and `count`, the entities in the truth.
    A share of zero items is 0.
    """
    true, found, right = Counter[str](), Counter[str](), Counter[str]()
    words = right_words = 0
    for true_tags, tags in zip(truth, predicted, strict=True):
        true_chunks, tag_chunks = set(chunks(true_tags)), set(chunks(tags))
        true.update(chunk.type for chunk in true_chunks)
        found.update(chunk.type for chunk in tag_chunks)
        right.update(chunk.type for chunk in true_chunks & tag_chunks)
        words += len(true_tags)
        right_words += sum(a == b for a, b in zip(true_tags, tags, strict=True))
    overall = precision_recall_f1(right.total(), found.total(), true.total())
    kinds = sorted(true | found)
    return {
        **{name: overall[name] for name in ("precision", "recall", "f1")},
        "accuracy": right_words / max(1, words),
        "per_type": {kind: precision_recall_f1(right[kind], found[kind], true[kind]) for kind in kinds},
    }


@dataclass(frozen=True)
class Entity:
    """An entity at characters `start` to `end` (exclusive) of the example's text.

    `score` is the mean probability of its words' tags.
    """

    text: str
    type: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Tagged(Prediction):
    """A tag for each word, and the entities that they make.

    Attributes:
        has_words: the words are the input's own.
        probability: the geometric mean of those of the tags, so that long texts are no less sure.
    """

    tags: tuple[str, ...]
    entities: tuple[Entity, ...]
    has_words: bool = True
    probability: float = 1.0

    @property
    def uncertainty(self) -> float:
        """1 minus the probability (the order of Shen et al. 2018, section 4.2: MNLP)."""
        return 1.0 - self.probability

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints. Tags of words that only the tokenizer knows would tell nobody anything."""
        tags = {"tags": list(self.tags)} if self.has_words else {}
        return {"entities": [vars(entity) for entity in self.entities], **tags}

    def readable(self, example: TaggedExample) -> str:
        """The text, and an entity a line."""
        found = [f"{each.score:7.2%}  {each.type:<11} {each.text}" for each in self.entities]
        return "\n  ".join([beside_texts(example), *(found or ["no entities"])])

    def display(self, example: TaggedExample) -> ShownAnswer:
        """The text with its entities; each has its type and its probability behind it."""
        (text,), number = example.texts, len(self.entities)
        marks: list[Mark] = [
            (each.start, each.end, "both", f"{each.type or 'entity'} {percent(each.score)}")
            for each in self.entities
        ]
        said = f"{number:,} {'entity' if number == 1 else 'entities'}" if number else "no entities"
        return ShownAnswer(said, passages=[Passage("", marked_pieces(text, (0, len(text)), marks))])


def entity_passages(example: TaggedExample, answer: Tagged) -> tuple[list[Passage], float]:
    """The text with all right and given entities, and the highest score of a wrong one (0: none is wrong)."""
    right, given = set(chunks(example.tags or ())), set(chunks(answer.tags))
    scores = zip(chunks(answer.tags), answer.entities, strict=True)
    sureness = max((entity.score for chunk, entity in scores if chunk not in right), default=0.0)
    first_wrong = min((chunk.start for chunk in right ^ given), default=0)
    place = example.spans[first_wrong][0] if example.spans else 0
    in_right, in_given = (
        {word: chunk for chunk in each for word in range(chunk.start, chunk.end)} for each in (right, given)
    )
    marks: list[Mark] = []
    numbers = range(len(example.words))
    for of_both, words in itertools.groupby(numbers, lambda word: (in_right.get(word), in_given.get(word))):
        first, *others = words
        start, end = example.spans[first][0], example.spans[others[-1] if others else first][1]
        marks.append((start, end, *_kind_and_note(*of_both)))
    (text,) = example.texts
    window = around(text, place, place, most=LONGEST)
    return [Passage("", marked_pieces(text, window, marks))], sureness


def _kind_and_note(right: Chunk | None, given: Chunk | None) -> tuple[Kind, str]:
    types = [short(each.type or "entity", _LONGEST_TYPE) for each in (right, given) if each is not None]
    if right == given:
        return ("both", types[0]) if types else ("", "")
    if len(types) == 2:
        return "other", " → ".join(dict.fromkeys(types))
    return ("right" if given is None else "given"), types[0]
