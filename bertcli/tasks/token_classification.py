"""Words -> a tag each, and the entities of these tags (Devlin et al. 2019, section 5.3)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import TaggedExample
from bertcli.metrics.entities import chunks, entity_scores
from bertcli.tasks.base import Term
from bertcli.tasks.supervised import Item, LabeledBatch, LabeledTask
from bertcli.tasks.windows import cut_windows, most_context
from bertcli.text.tokenizer import Tokenizer

OUTSIDE = "O"


@dataclass(frozen=True, slots=True)
class WindowWords:
    """The words of a text that a window predicts, and the position in its row of the first piece of each."""

    words: list[int]
    positions: list[int]


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
class Tagged:
    """A tag for each word, and the entities that they make."""

    tags: tuple[str, ...]
    entities: tuple[Entity, ...]

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"entities": [vars(entity) for entity in self.entities], "tags": list(self.tags)}


class TokenClassification(LabeledTask):
    """A tag for each word, predicted at its first piece; long texts in windows, each word in one of them.

    A word is in the loss, and is predicted, in the window where it has most context. A word without any
    piece (control characters) has the tag O, and of one longer than a window only the beginning is read.
    """

    metric = "f1"

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...]):
        super().__init__(settings, labels)
        self._numbers = {label: number for number, label in enumerate(labels)}

    def encode(self, examples: Sequence[TaggedExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each window of each text. Raises `UserError` for a tag that is not in `labels`."""
        words = list({word: None for example in examples for word in example.words})
        pieces = dict(zip(words, tokenizer.encode_words(words), strict=True))
        return [
            item
            for number, example in enumerate(examples)
            for item in self._windows(
                number, example, [pieces[word] for word in example.words], tokenizer=tokenizer
            )
        ]

    def _windows(
        self, number: int, example: TaggedExample, pieces: Sequence[list[int]], tokenizer: Tokenizer
    ) -> list[Item]:
        frame, cost = tokenizer.frame, tokenizer.frame.cost(pair=False)
        room = self.settings.max_length - cost
        sizes = [min(len(ids), room) for ids in pieces]
        ids = [token for word in pieces for token in word[:room]]
        firsts = np.cumsum([0, *sizes])
        windows = cut_windows(sizes, room, overlap=min(self.settings.doc_stride, room // 2))
        owner_T = most_context(windows)
        full = sum(map(len, pieces)) + cost
        with_pieces = np.flatnonzero(sizes)
        items = []
        for place, window in enumerate(windows):
            words = with_pieces[owner_T[firsts[with_pieces]] == place].tolist()
            positions = [int(firsts[word]) - window.start + frame.a_starts for word in words]
            row = frame.row(ids[window.start : window.stop])
            target = None if example.tags is None else [self._number(example, word) for word in words]
            dropped = sum(len(pieces[word]) - sizes[word] for word in words)
            layout = WindowWords(words, positions)
            items.append(Item(number, (row,), target, layout=layout, dropped=dropped, full_length=full))
        return items

    def _number(self, example: TaggedExample, word: int) -> int:
        assert example.tags is not None
        tag = example.tags[word]
        if tag not in self._numbers:
            raise UserError(
                f"{example.where}: the tag {tag!r} of the word {example.words[word]!r} is not one of the "
                f"model's: {', '.join(self.labels)}. Correct it, or fine-tune on a file that has it"
            )
        return self._numbers[tag]

    def count(self, batch: LabeledBatch) -> float:
        return max(1, sum(len(item.layout.words) for item in batch.items))  # texts may have no words

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        rows = [row for row, item in enumerate(batch.items) for _ in item.layout.words]
        positions = [position for item in batch.items for position in item.layout.positions]
        rows_W, positions_W = torch.tensor([rows, positions], dtype=torch.long, device=logits.device)
        return logits[rows_W, positions_W].float()

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        """Cross-entropy of the tags, summed over the words of the windows."""
        targets = list(itertools.chain.from_iterable(item.target for item in batch.items))
        targets_W = torch.tensor(targets, dtype=torch.long, device=logits.device)
        loss = F.cross_entropy(self.answers(logits, batch), targets_W, reduction="sum")
        return Term(loss, correct=None)

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        return [logits_TC[: item.length] for logits_TC, item in zip(logits, batch.items, strict=True)]

    def predict(self, example: TaggedExample, items: Sequence[Item], logits: Sequence[Tensor]) -> Tagged:
        tags = [OUTSIDE] * len(example.words)
        probabilities = [1.0] * len(example.words)
        for item, logits_TC in zip(items, logits, strict=True):
            best = logits_TC[item.layout.positions].softmax(dim=-1).max(dim=-1)
            answers = zip(item.layout.words, best.indices.tolist(), best.values.tolist(), strict=True)
            for word, number, probability in answers:
                tags[word], probabilities[word] = self.labels[number], probability
        entities = []
        for chunk in chunks(tags):
            start, end = example.spans[chunk.start][0], example.spans[chunk.end - 1][1]
            score = float(np.mean(probabilities[chunk.start : chunk.end]))
            entities.append(Entity(example.text[start:end], chunk.type, start, end=end, score=score))
        return Tagged(tuple(tags), tuple(entities))

    def is_right(self, example: TaggedExample, prediction: Tagged) -> bool:
        return prediction.tags == example.tags

    def score(self, examples: Sequence[TaggedExample], predictions: Sequence[Tagged]) -> Mapping[str, Any]:
        truth = [example.tags for example in examples if example.tags is not None]
        return entity_scores(truth, [prediction.tags for prediction in predictions])
