"""A text and some choices -> the right choice (Devlin et al. 2019, section 4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertcli.objectives.base import Term
from bertcli.system.terminal import percent, short
from bertcli.tasks.examples import ChoiceExample
from bertcli.tasks.row_words import Part, ReadRow, read_parts, text_places
from bertcli.tasks.shown import (
    LONGEST,
    Mistake,
    MistakeWords,
    Output,
    Passage,
    Piece,
    Prediction,
    plain_passages,
)
from bertcli.tasks.supervised import NEVER, Item, LabeledBatch, LabeledTask
from bertcli.tasks.verdict import Verdict, share_verdict
from bertcli.tokenizer.frame import Frame, Row, longest_first
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Chosen(Prediction):
    """The number of the likeliest choice, from 0, and the probability of every choice."""

    choice: int
    probabilities: list[float]

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"choice": self.choice, "probabilities": self.probabilities}

    def readable(self, example: ChoiceExample) -> str:
        """The choices with their probabilities, a line each, the likeliest first."""
        shares = zip(self.probabilities, example.choices, strict=True)
        return "\n".join(f"{p:7.2%}  {choice}" for p, choice in sorted(shares, key=lambda each: -each[0]))


class MultipleChoice(LabeledTask):
    """A row and a logit for each choice, and a softmax over the choices of an example, of which there may be
    any number."""

    type = "multiple-choice"
    head = "choices"
    metric = "accuracy"
    pipeline_tag = type
    mistake_words = MistakeWords(marks={"right": "right", "given": "given"})

    def encode(self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each example, with a row for each choice: the pair of text_a and "text_b choice".

        The longer segment of a pair that is too long is cut at its end; text_b is shortened first, then the
        choice.
        """
        texts = [
            text for example in examples for text in (example.text_a, example.text_b or "", *example.choices)
        ]
        ids = iter(tokenizer.encode_batch(texts))
        items = []
        for number, example in enumerate(examples):
            a, b = next(ids), next(ids)
            choices = [next(ids) for _ in example.choices]
            rows = tuple(self._row(a, b, choice, frame=tokenizer.frame) for choice in choices)
            full = len(a) + len(b) + max(map(len, choices)) + tokenizer.frame.cost(pair=True)
            dropped = full - max(row.length for row in rows)
            items.append(Item(number, rows, example.label, dropped=dropped, full_length=full))
        return items

    def _row(self, a: list[int], b: list[int], choice: list[int], frame: Frame) -> Row:
        room = self.settings.max_length - frame.cost(pair=True)
        kept_a, second = longest_first(len(a), len(b) + len(choice), room)
        kept_choice = min(len(choice), second)
        return frame.row(a[:kept_a], [*b[: second - kept_choice], *choice[:kept_choice]])

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        """The logits [E, C] from [rows, 1]; choices that an example does not have are `NEVER`."""
        groups = self.split_logits(logits.float(), batch)
        return pad_sequence(groups, batch_first=True, padding_value=NEVER)

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        """Cross-entropy over the choices of each example."""
        targets_E = torch.tensor([item.target for item in batch.items], device=logits.device)
        return Term(F.cross_entropy(self.answers(logits, batch), targets_E, reduction="sum"), correct=None)

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        """The logits of each example's choices, [choices]."""
        return list(logits[:, 0].split([len(item.rows) for item in batch.items]))

    def predict(self, example: ChoiceExample, items: Sequence[Item], logits: Sequence[Tensor]) -> Chosen:
        (logits_C,) = logits
        return Chosen(int(logits_C.argmax()), logits_C.softmax(dim=-1).tolist())

    def is_right(self, example: ChoiceExample, prediction: Chosen) -> bool:
        return prediction.choice == example.label

    def score(self, examples: Sequence[ChoiceExample], predictions: Sequence[Chosen]) -> Mapping[str, Any]:
        right = [self.is_right(*each) for each in zip(examples, predictions, strict=True)]
        return {"accuracy": sum(right) / len(right)}

    def verdict(self, examples: Sequence[ChoiceExample], metrics: Mapping[str, Any]) -> Verdict:
        """The verdict beside the most frequent place of the right choice, or chance."""
        n = len(examples)
        chance = sum(1 / len(example.choices) for example in examples) / n
        place, count = Counter(example.label for example in examples).most_common(1)[0]
        share = max(chance, count / n)
        what = "choosing by chance" if chance == share else f"always choosing number {place} (counted from 0)"
        blind = f"{what} ({share:.4g})"
        return share_verdict("accuracy", "accuracy", metrics["accuracy"], share=share, blind=blind, rows=n)

    def mistake(self, example: ChoiceExample, prediction: Chosen, examples: Sequence[Any]) -> Mistake:
        passages = plain_passages(example.texts[: -len(example.choices)])
        for place, choice in enumerate(example.choices[:10]):
            kind = "right" if place == example.label else "given" if place == prediction.choice else ""
            piece = Piece(short(choice, LONGEST // 2), kind, percent(prediction.probabilities[place]))
            passages.append(Passage(f"choice {place}", [piece]))
        right, given = (f"choice {place}" for place in (example.label, prediction.choice))
        return Mistake(passages, prediction.probabilities[prediction.choice], right=right, given=given)

    def answer_names(self, example: ChoiceExample) -> Sequence[str]:
        return example.choices

    def output(
        self, example: ChoiceExample, items: Sequence[Item], logits: Sequence[Tensor], target: int | None
    ) -> Output:
        """The logit of a choice, which has a row of its own."""
        best = int(logits[0].argmax()) if target is None else target
        return Output(example.choices[best], lambda logits_B1: logits_B1[:, 0], row=best)

    def read(self, example: ChoiceExample, item: Item, number: int, tokenizer: Tokenizer) -> ReadRow:
        """The row of a choice."""
        row, choice = item.rows[number], example.choices[number]
        first, second = text_places(row, tokenizer.frame)
        kept = min(len(tokenizer.encode(choice)), len(second))  # text_b is shortened first, then the choice
        middle = second.stop - kept
        parts = [
            Part(example.text_a, first, 0),
            Part(example.text_b or "", range(second.start, middle), 1),
            Part(choice, range(middle, second.stop), 1),
        ]
        return read_parts(row, parts, tokenizer)
