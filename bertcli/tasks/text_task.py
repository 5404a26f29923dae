"""A text or a pair -> an answer for all of it, by a row or by windows: what classes and numbers share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from bertcli.config.task import TaskSettings
from bertcli.tasks.examples import TextExample
from bertcli.tasks.labeled_texts import may_be_labeled_texts
from bertcli.tasks.row_words import Part, ReadRow, read_parts, text_places
from bertcli.tasks.scores import reranking_scores
from bertcli.tasks.shown import Output
from bertcli.tasks.supervised import Item, Items, LabeledBatch, LabeledTask, Logits, encode_texts
from bertcli.tasks.windows import Windows
from bertcli.tokenizer.tokenizer import Tokenizer


class TextTask(LabeledTask):
    """A task whose head gives the logits of a row; those of a text are joined from its windows."""

    head = "sequences"
    pipeline_tag = "text-classification"
    may_be_in = staticmethod(may_be_labeled_texts)

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...] = ()):
        super().__init__(settings, labels)
        self.windows = Windows.of(settings)

    @abstractmethod
    def target(self, label: Any) -> Any:
        """The target of the loss for a label."""

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each example, with a row for each window."""
        items: list[Item] = []
        for number, (example, texts) in enumerate(encode_texts(examples, tokenizer)):
            b = texts[1] if len(texts) > 1 else None
            rows, dropped = self.windows.divide(texts[0], b, tokenizer.frame)
            answer = None if example.label is None else self.target(example.label)
            full = sum(map(len, texts)) + tokenizer.frame.cost(b is not None)
            sizes = {"dropped": dropped, "full_length": full, "windows": len(rows)}
            items.append(Item(number, tuple(rows), answer, **sizes))
        return items

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        """The logits of each text, float32 [B, C]."""
        return self.windows.join(logits.float(), [len(item.rows) for item in batch.items])

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        """The logits of each text's windows, [windows, C]."""
        return list(logits.split([len(item.rows) for item in batch.items]))

    def logits_of_text(self, logits: Logits) -> Tensor:
        """The logits [C] of a text from those of its only item."""
        (windows_WC,) = logits
        return self.windows.join(windows_WC, [len(windows_WC)])[0]

    def output(self, example: TextExample, items: Items, logits: Logits, target: int | None) -> Output:
        """The logit of an answer in the window where it is highest."""
        best = int(self.logits_of_text(logits).argmax()) if target is None else target
        (windows_WC,) = logits
        row = int(windows_WC[:, best].argmax())
        return Output(self.labels[best], lambda logits_BC: logits_BC[:, best], row=row)

    def read(self, example: TextExample, item: Item, number: int, tokenizer: Tokenizer) -> ReadRow:
        """A window: all of the shorter text of a pair, and a part of the other one."""
        lengths = [len(ids) for ids in tokenizer.encode_batch(example.texts)]
        frame, row = tokenizer.frame, item.rows[number]
        windows = self.windows.places(lengths[0], lengths[1] if len(lengths) > 1 else None, frame)[number]
        places = zip(example.texts, text_places(row, frame), windows, strict=False)
        parts = [
            Part(text, tokens, segment, skipped=window.start)
            for segment, (text, tokens, window) in enumerate(places)
        ]
        return read_parts(row, parts, tokenizer)


def pair_ranking(
    examples: Sequence[TextExample], labels: Sequence[float], scores: Sequence[float]
) -> dict[str, float]:
    """`tasks.scores.reranking_scores` of pairs, by their first texts; empty for single texts."""
    if any(len(example.texts) == 1 for example in examples):
        return {}
    return reranking_scores([example.texts[0] for example in examples], labels, scores)
