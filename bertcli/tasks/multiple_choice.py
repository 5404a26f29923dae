"""A text and some choices -> the right choice (Devlin et al. 2019, section 4.4)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertcli.config.task import TaskSettings
from bertcli.objectives.base import Term
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.system.terminal import percent, short
from bertcli.tasks import shown
from bertcli.tasks.examples import ChoiceExample
from bertcli.tasks.label_cells import written_list
from bertcli.tasks.lists import recognize_choices
from bertcli.tasks.row_words import Part, ReadRow, read_parts, text_places
from bertcli.tasks.rows import parse_json
from bertcli.tasks.supervised import NEVER, Item, Items, LabeledBatch, LabeledTask, Logits, encode_texts
from bertcli.tasks.table import BadRow, Table, each, one_spelling, scalar_text
from bertcli.tasks.table import Row as TableRow
from bertcli.tasks.verdict import Verdict, share_verdict
from bertcli.tokenizer.frame import Frame, Row, longest_first
from bertcli.tokenizer.tokenizer import Tokenizer

_LETTERS = "ABCDEFGHIJ"


def choice_examples(table: Table) -> Iterator[ChoiceExample | BadRow]:
    """An example for each row. The choices, at least two, are a list in one column, or a column each.

    A label is the text of the right choice, its number (from 0, or from `first_choice`), its letter, or the
    name of its column. Raises `UserError` if a column is missing, or numbers count from another first one.
    """
    settings, given = table.file.settings, table.file.settings.choices
    assert given is not None
    texts = [table.column(column, "task.text") for column in settings.text_columns]
    columns = [table.column(column, "task.choices") for column in given] if isinstance(given, list) else []
    listed = "" if isinstance(given, list) else table.column(given, "task.choices")
    label, numbering = table.label(), _Numbering(settings.first_choice)

    def example(row: TableRow) -> ChoiceExample:
        read = tuple(row.text(column) for column in texts)
        choices = tuple(row.text(column) for column in columns) or _listed(row, listed, table.file.path)
        for number, choice in enumerate(choices):
            if not choice.strip():
                raise BadRow(f"{row.where}: choice {number} (counted from 0) is empty")
        if len(choices) < 2:
            raise BadRow(f"{row.where}: {len(choices)} choice; expected at least two")
        right = None if label is None else numbering.right(row, label, choices, columns)
        return ChoiceExample(row.where, row.values, read, choices=choices, label=right)

    return each(table.rows, example)


def _listed(row: TableRow, column: str, path: InputPath) -> tuple[str, ...]:
    """The choices in a column that holds a list of them; in text files the list is JSON."""
    value = row.value(column)
    where = f"{row.where}, column {column!r}"
    if isinstance(value, str) and value.lstrip().startswith("["):
        listed = written_list(value)
        value = parse_json(value, path, row.number) if listed is None else listed
    if not isinstance(value, list):
        raise BadRow(
            f'{where}: {value!r} is not a list of choices; expected a JSON list such as ["yes", "no"], or a '
            "column for each choice (task.choices: [a, b])"
        )
    return tuple("" if choice is None else scalar_text(choice, where) for choice in value)


class _Numbering:
    """How the labels of a file number the choices."""

    def __init__(self, first: int | None):
        self._is_given, self._first = first is not None, first or 0
        self._seen_first = False

    def right(self, row: TableRow, column: str, choices: Sequence[str], names: Sequence[str]) -> int:
        """The number of the right choice, from 0.

        Args:
            names: the names of the columns of the choices; empty if the choices are a list.
        """
        value = row.value(column)
        text = "" if value is None else scalar_text(value, row.where).strip()
        by_number = self._number(one_spelling(text), row.where, len(choices))
        stripped = [choice.strip() for choice in choices]
        by_text = stripped.index(text) if isinstance(value, str) and text in stripped else None
        if by_number is not None and (self._is_given or by_text in (None, by_number)):
            return by_number
        if by_number is not None:
            raise BadRow(
                f"{row.where}: the label {text!r} is the text of choice {by_text}, and the number of another "
                "one; if labels are numbers alone, set task.first_choice: 0 (or 1, if the first choice is 1)"
            )
        names = names if text in names else _LETTERS[: len(choices)]
        name = text if text in names else text.upper()
        by_name = names.index(name) if name in list(names) else None
        right = {found for found in (by_text, by_name) if found is not None}
        if not right:
            last = self._first + len(choices) - 1
            raise BadRow(
                f"{row.where}: the label {text!r} is neither the number of a choice, {self._first} (the "
                f"first) to {last}, nor its letter, nor the text of one"
            )
        if len(right) > 1:
            raise BadRow(
                f"{row.where}: the label {text!r} is the text of one choice, and the name of another"
            )
        return right.pop()

    def _number(self, text: str, where: str, choices: int) -> int | None:
        """The choice with this number, counted from 0; None if there is none.

        Raises `UserError` if the file counts from another first number: if such rows were only left out, the
        labels of all others would be shifted.
        """
        if not text.isdecimal():
            return None
        number, other = int(text), 1 - self._first
        self._seen_first |= number == self._first
        is_beyond = number == (choices if self._first == 0 else 0)
        if is_beyond and not self._seen_first:
            raise UserError(
                f"{where}: the label {text!r} is no choice, if {self._first} is the first of {choices}; if "
                f"the labels count from {other}, set task.first_choice: {other}; else mend this row"
            )
        return number - self._first if 0 <= number - self._first < choices else None


@dataclass(frozen=True)
class Chosen(shown.Prediction):
    """The number of the likeliest choice, from 0, and the probability of every choice."""

    choice: int
    probabilities: list[float]

    @property
    def uncertainty(self) -> float:
        """The nearness of the two likeliest choices."""
        return shown.nearness(self.probabilities)

    def readable(self, example: ChoiceExample) -> str:
        """The choices with their probabilities, a line each, the likeliest first."""
        return "\n".join(f"{p:7.2%}  {choice}" for choice, p in self.display(example).probabilities)

    def display(self, example: ChoiceExample) -> shown.ShownAnswer:
        """The choice, and the probability of each one."""
        probabilities = zip(example.choices, self.probabilities, strict=True)
        return shown.ShownAnswer(example.choices[self.choice], shown.likeliest_first(probabilities))


class MultipleChoice(LabeledTask):
    """A row and a logit for each choice, and a softmax over the choices of an example, of which there may be
    any number."""

    type = "multiple-choice"
    keys = ("choices", "first_choice")
    has_choices = True
    table_examples = staticmethod(choice_examples)
    head = "choices"
    recognize = staticmethod(recognize_choices)
    metric = "accuracy"
    pipeline_tag = type
    # One column holds a list of choices.
    foreign_keys: ClassVar[Mapping[str, Any]] = {"text": "text", "choices": "choices"}
    mistake_words = shown.MistakeWords(marks={"right": "right", "given": "given"})

    @classmethod
    def check_settings(cls, settings: TaskSettings) -> None:
        super().check_settings(settings)
        if settings.choices is None:
            raise ValueError("choices: name the column of each choice, or the one that holds their list")

    @classmethod
    def example(cls, texts: Sequence[str], where: str, settings: TaskSettings) -> ChoiceExample:
        """The texts, and the choices after them."""
        number = cls.num_texts(settings)
        text, choices = super().example(texts[:number], where, settings), tuple(texts[number:])
        columns = {**text.columns, "choices": list(choices)}
        return ChoiceExample(where, columns, text.given, choices=choices, label=None)

    def encode(self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each example, with a row for each choice: the pair of a text and "other text, choice".

        The longer segment of a pair that is too long is cut at its end; the other text is shortened first,
        then the choice.
        """
        items = []
        for number, (example, ids) in enumerate(encode_texts(examples, tokenizer)):
            (a, *others), choices = ids[: len(example.given)], ids[len(example.given) :]
            b = others[0] if others else []
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
        return Term(F.cross_entropy(self.answers(logits, batch), targets_E, reduction="sum"))

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        """The logits of each example's choices, [choices]."""
        return list(logits[:, 0].split([len(item.rows) for item in batch.items]))

    def predict(self, example: ChoiceExample, items: Items, logits: Logits) -> Chosen:
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

    def mistake(self, example: ChoiceExample, prediction: Chosen, examples: Sequence[Any]) -> shown.Mistake:
        passages = shown.plain_passages(example.given)
        for place, choice in enumerate(example.choices[:10]):
            kind = "right" if place == example.label else "given" if place == prediction.choice else ""
            text, note = short(choice, shown.LONGEST // 2), percent(prediction.probabilities[place])
            passages.append(shown.Passage(f"choice {place}", [shown.Piece(text, kind, note)]))
        right, given = (f"choice {place}" for place in (example.label, prediction.choice))
        return shown.Mistake(passages, prediction.probabilities[prediction.choice], right=right, given=given)

    def answer_names(self, example: ChoiceExample) -> Sequence[str]:
        return example.choices

    def output(
        self, example: ChoiceExample, items: Items, logits: Logits, target: int | None
    ) -> shown.Output:
        """The logit of a choice, which has a row of its own."""
        best = int(logits[0].argmax()) if target is None else target
        return shown.Output(example.choices[best], lambda logits_B1: logits_B1[:, 0], row=best)

    def read(self, example: ChoiceExample, item: Item, number: int, tokenizer: Tokenizer) -> ReadRow:
        """The row of a choice."""
        row, choice = item.rows[number], example.choices[number]
        first, second = text_places(row, tokenizer.frame)
        kept = min(len(tokenizer.encode(choice)), len(second))  # the other text is shortened first
        middle = second.stop - kept
        places = (first, range(second.start, middle))
        given = enumerate(zip(example.given, places, strict=False))
        parts = [Part(text, tokens, segment) for segment, (text, tokens) in given]
        return read_parts(row, [*parts, Part(choice, range(middle, second.stop), 1)], tokenizer)
