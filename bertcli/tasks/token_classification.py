"""Tags of words -> entities and their precision, recall and F1, by the rules of the CoNLL shared tasks."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.config.task import TaskSettings
from bertcli.objectives.base import Term
from bertcli.system.errors import UserError
from bertcli.tasks.brat import read_spans
from bertcli.tasks.columns import Recognized, Sample
from bertcli.tasks.conll import read_conll
from bertcli.tasks.entities import Entity, Tagged, entity_passages, entity_scores
from bertcli.tasks.examples import TaggedExample
from bertcli.tasks.lists import recognize_tags
from bertcli.tasks.places import at_words, mentions_of
from bertcli.tasks.row_words import ReadRow, Word, row_of, text_places
from bertcli.tasks.shown import Mistake, MistakeWords, Output
from bertcli.tasks.span_files import recognize_spans
from bertcli.tasks.supervised import (
    AT_ONCE,
    Item,
    Items,
    LabeledBatch,
    LabeledTask,
    Logits,
    cut_windows,
    most_context,
)
from bertcli.tasks.tags import chunks
from bertcli.tasks.verdict import Verdict, no_better, no_score
from bertcli.tasks.words import running_text, tagged_examples
from bertcli.tokenizer.frame import Frame
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.word_places import placed_words

OUTSIDE = "O"


@dataclass(frozen=True, slots=True)
class WindowWords:
    """The words of a text that a window predicts, and the position in its row of the first piece of each."""

    words: list[int]
    positions: list[int]


class TokenClassification(LabeledTask):
    """A tag for each word, predicted at its first piece; long texts in windows, each word in one of them.

    A word is in the loss, and is predicted, in the window where it has most context. A word without any piece
    (control characters) has the tag O. Only the beginning of a word longer than a window is read.
    """

    type = "token-classification"
    keys = ("label_names", "tag_scheme", "words", "span_ends", "overlaps", "offsets")
    formats = ("conll", "spans")
    names_columns = False
    takes_pairs = False
    head = "tokens"
    names_outputs = True
    in_windows = True
    metric = "f1"
    pipeline_tag = type
    label_name = "type"
    mistake_words = MistakeWords(
        marks={"both": "found", "right": "missed", "given": "not there", "other": "other type or ends"}
    )
    table_examples = staticmethod(tagged_examples)
    own_examples: ClassVar = {"conll": read_conll, "spans": read_spans}
    at_words = staticmethod(at_words)
    is_cased = True
    fixed_texts = 1  # also where CoNLL files need no name for its column
    foreign_keys: ClassVar[Mapping[str, Any]] = {"words": "given"}

    @staticmethod
    def recognize(sample: Sample) -> Recognized | None:
        return recognize_spans(sample) or recognize_tags(sample)

    def parts(self, prediction: Tagged) -> Sequence[str]:
        """The tag of each word."""
        return prediction.tags

    @classmethod
    def usual_settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The words are the tokenizer's for spans, which are marked in texts as they stand."""
        if values.get("words") is not None or values.get("format", "auto") == "auto":
            return values
        return values | {"words": "tokenizer" if values["format"] == "spans" else "given"}

    @classmethod
    def check_settings(cls, settings: TaskSettings) -> None:
        if len(settings.text_columns) > 1:
            raise ValueError(f"text: one column, not a pair ({cls.type})")

    @classmethod
    def usual_format(cls, settings: TaskSettings) -> str:
        """A table has columns with names, and a CoNLL file columns with numbers."""
        return "tsv" if isinstance(settings.text, str) else "conll"

    @classmethod
    def example(cls, texts: Sequence[str], where: str, settings: TaskSettings) -> TaggedExample:
        """The words of running text, without tags."""
        return running_text(where, {"text": texts[0]}, texts[0])

    @staticmethod
    def label_set(examples: Iterable[TaggedExample], settings: TaskSettings) -> tuple[str, ...]:
        """O, then B and I of each type, even if only one of them occurs."""
        types = {tag[1:] for example in examples for tag in example.names if tag != OUTSIDE}
        if not types:
            raise UserError("task.train: every word has the tag O; expected at least one entity")
        return (OUTSIDE, *(letter + kind for kind in sorted(types) for letter in "BI"))

    def encode(self, examples: Sequence[TaggedExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each window of each text. Raises `UserError` for a tag that is not in `labels`."""
        items = list[Item]()
        for number, (example, own) in enumerate(
            zip(examples, self._pieces(examples, tokenizer), strict=True)
        ):
            items += self._windows(number, example, own, frame=tokenizer.frame)
        return items

    def _pieces(self, examples: Sequence[TaggedExample], tokenizer: Tokenizer) -> Iterator[list[list[int]]]:
        """The ids of each word of each example: after a blank, or as they are in the text as it stands."""
        if self.settings.words == "tokenizer":
            for start in range(0, len(examples), AT_ONCE):
                some = examples[start : start + AT_ONCE]
                placed = placed_words(tokenizer, [example.texts[0] for example in some])
                yield from ([list(word.ids) for word in words] for words in placed)
            return
        words = list({word: None for example in examples for word in example.words})
        pieces = dict(zip(words, tokenizer.encode_words(words), strict=True))
        yield from ([pieces[word] for word in example.words] for example in examples)

    def _windows(
        self, number: int, example: TaggedExample, pieces: Sequence[list[int]], frame: Frame
    ) -> list[Item]:
        cost = frame.cost(pair=False)
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
        if tag not in self.label_numbers:
            raise UserError(
                f"{example.where}: the tag {tag!r} of the word {example.words[word]!r} is not one of the "
                f"model's: {', '.join(self.labels)}. Correct it, or fine-tune on a file that has it"
            )
        return self.label_numbers[tag]

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
        return Term(loss)

    def predict(self, example: TaggedExample, items: Items, logits: Logits) -> Tagged:
        tags = [OUTSIDE] * len(example.words)
        probabilities = [1.0] * len(example.words)
        for item, logits_TC in zip(items, logits, strict=True):
            best = logits_TC[item.layout.positions].softmax(dim=-1).max(dim=-1)
            answers = zip(item.layout.words, best.indices.tolist(), best.values.tolist(), strict=True)
            for word, number, probability in answers:
                tags[word], probabilities[word] = self.labels[number], probability
        text, entities = example.texts[0], []
        for chunk in chunks(tags):
            start, end = example.spans[chunk.start][0], example.spans[chunk.end - 1][1]
            score = float(np.mean(probabilities[chunk.start : chunk.end]))
            entities.append(Entity(text[start:end], chunk.type, start, end=end, score=score))
        sure = float(np.exp(np.mean(np.log(probabilities)))) if probabilities else 1.0
        has_words = self.settings.words != "tokenizer"
        return Tagged(tuple(tags), tuple(entities), has_words=has_words, probability=sure)

    def is_right(self, example: TaggedExample, prediction: Tagged) -> bool:
        return prediction.tags == example.tags

    def score(self, examples: Sequence[TaggedExample], predictions: Sequence[Tagged]) -> Mapping[str, Any]:
        truth = [example.tags for example in examples if example.tags is not None]
        return entity_scores(truth, [prediction.tags for prediction in predictions])

    def verdict(self, examples: Sequence[TaggedExample], metrics: Mapping[str, Any]) -> Verdict:
        """The verdict beside tagging every word O."""
        f1, baseline = metrics["f1"], {"f1": 0.0}
        if not any(kind["count"] for kind in metrics["per_type"].values()):
            return no_score(baseline, "no word has an entity's tag")
        if f1 > 0:
            return Verdict(True, baseline, f"entity F1 {f1:.4g}, where tagging every word O gives 0")
        said = "no entity was found correctly: F1 0"
        return no_better(baseline, said, "tagging every word O (0)", noise_of=None)

    def right_answer(self, example: TaggedExample) -> list[Any]:
        """The tags of the words, or if the file does not have these words, the entities."""
        if self.settings.words != "tokenizer":
            return list(example.tags or ())
        (text,) = example.texts
        return [{"text": text[e.start : e.end], **e._asdict()} for e in mentions_of(example) or ()]

    def mistake(self, example: TaggedExample, prediction: Tagged, examples: Sequence[Any]) -> Mistake:
        passages, sureness = entity_passages(example, prediction)
        return Mistake(passages, sureness)

    def answer_names(self, example: TaggedExample) -> Sequence[str]:
        """The words, each of which has a tag."""
        return example.words

    def output(self, example: TaggedExample, items: Items, logits: Logits, target: int | None) -> Output:
        """The tag of a word, at its first piece, in the window that predicts it.

        If no word is asked for, it is the one that is least likely to be outside of all entities.
        """
        places = {
            word: (number, position)
            for number, item in enumerate(items)
            for word, position in zip(item.layout.words, item.layout.positions, strict=True)
        }
        if not places or (target is not None and target not in places):
            what = "the word" if places else "the text"
            raise UserError(f"{example.where}: {what} has no token to be tagged by")
        shares = {word: logits[item][position].softmax(dim=-1) for word, (item, position) in places.items()}
        outside = self.labels.index(OUTSIDE) if OUTSIDE in self.labels else None
        inside = {word: 1.0 if outside is None else 1 - float(p[outside]) for word, p in shares.items()}
        word = max(inside, key=inside.__getitem__) if target is None else target
        item, position = places[word]
        tag = int(shares[word].argmax())
        answer = f"{self.labels[tag]} ({example.words[word]})"
        return Output(answer, lambda logits_BTC: logits_BTC[:, position, tag], item=item)

    def read(self, example: TaggedExample, item: Item, number: int, tokenizer: Tokenizer) -> ReadRow:
        """A window of tagged words, with all of its words, even those that another window predicts."""
        layout: WindowWords = item.layout
        (row,) = item.rows
        window = text_places(row, tokenizer.frame)[0]
        bounds = np.cumsum([0, *map(len, next(self._pieces([example], tokenizer)))])
        pieces = int(bounds[-1])
        bounds += layout.positions[0] - bounds[layout.words[0]]
        ends = pairwise(bounds.tolist())
        places = (range(max(start, window.start), min(stop, window.stop)) for start, stop in ends)
        words = [Word(text, tokens, 0) for text, tokens in zip(example.words, places, strict=True) if tokens]
        return row_of(row, words, pieces)
