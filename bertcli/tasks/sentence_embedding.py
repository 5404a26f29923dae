"""Texts -> vectors whose cosines say how similar the texts are (Reimers and Gurevych 2019)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from bertcli.batches.batch import batch_of
from bertcli.config.task import TaskSettings
from bertcli.objectives.base import JointTask, Term
from bertcli.tasks import compared_vectors as compared
from bertcli.tasks.examples import SimilarExample
from bertcli.tasks.scores import correlation_scores, random_order, ranking_scores
from bertcli.tasks.shown import Kind, Mistake, MistakeWords, Prediction
from bertcli.tasks.supervised import Item, Items, LabeledBatch, LabeledTask, Logits, encode_texts
from bertcli.tasks.table import BadRow, Table, each, read_number
from bertcli.tasks.table import Row as TableRow
from bertcli.tasks.text_task import Windows
from bertcli.tasks.verdict import SURE, Verdict, no_score, unless_noise
from bertcli.tokenizer.frame import Row
from bertcli.tokenizer.tokenizer import Tokenizer

_TOKENS_AT_ONCE = 2048
"""Tokens of a forward pass on a CPU, padding included. A question is not padded to its paragraph, and the
output of a layer stays in the cache: a step of 64 pairs of SQuAD takes two thirds of the time that all texts
at once take (LOG.md)."""


def similar_examples(table: Table) -> Iterator[SimilarExample | BadRow]:
    """An example for each row. Raises `UserError` if a column is missing."""
    settings = table.file.settings
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    score = None if settings.label is None else table.label()

    def example(row: TableRow) -> SimilarExample:
        texts = tuple(row.text(column) for column in columns)
        value = None if score is None else read_number(row, score, settings)
        return SimilarExample(row.where, row.values, texts, score=value)

    return each(table.rows, example)


@dataclass(frozen=True)
class Vectors(Prediction):
    """The vectors of an example's texts, fp32 [texts, D], and a key of each."""

    vectors_CD: Tensor
    keys: tuple[compared.Key, ...]
    score: float | None

    def as_json(self) -> dict[str, Any]:
        """The vectors alone."""
        return {"vectors": self.vectors_CD.tolist()}


class SentenceEmbedding(LabeledTask, JointTask):
    """A task with three kinds of rows:

    - anchor, positive and any number of negatives: `compared_vectors.ranking_loss`;
    - a pair with a score (`label`): `compared_vectors.cosent_loss`;
    - plain text: a text is its own positive, with other dropout (SimCSE, Gao et al. 2021, section 3).
    """

    type = "sentence-embedding"
    keys = ("scale", "pooling", "windows", "max_windows")
    names_columns = False
    any_texts = True
    head = None
    pipeline_tag = "sentence-similarity"
    answer_kind = "value"
    table_examples = staticmethod(similar_examples)

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...] = ()):
        super().__init__(settings, labels)
        self.windows = Windows.of(settings)
        self.has_scores = settings.label is not None
        self.metric = "spearman" if self.has_scores else "mrr"
        marks: dict[Kind, str] = {} if self.has_scores else {"right": "right", "given": "given"}
        self.mistake_words = MistakeWords(
            are_wrong="are not in their place", worst="worst", score="place", marks=marks
        )

    @classmethod
    def usual_settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Plain text has the column `text`."""
        return values | {"text": "text"} if values.get("text") is None else values

    @classmethod
    def check_settings(cls, settings: TaskSettings) -> None:
        if settings.label is not None and len(settings.text_columns) != 2:
            raise ValueError(f"text: with a label, the score of a pair, two columns ({cls.type})")

    @classmethod
    def has_answers(cls, settings: TaskSettings) -> bool:
        """False for plain text."""
        return len(settings.text_columns) != 1

    @classmethod
    def example(cls, texts: Sequence[str], where: str, settings: TaskSettings) -> SimilarExample:
        """The texts, the anchor first."""
        columns = super().example(texts, where, settings).columns
        return SimilarExample(where, columns, tuple(texts), score=None)

    def encode(self, examples: Sequence[SimilarExample], tokenizer: Tokenizer) -> list[Item]:
        """An item for each example, with a row for each window of each text; plain text is there twice.

        The layout is the number of windows of each text.
        """
        frame = tokenizer.frame
        items = []
        for number, (example, texts) in enumerate(encode_texts(examples, tokenizer)):
            divided = [self.windows.divide(ids, None, frame) for ids in texts]
            dropped, full = sum(each.dropped for each in divided), max(map(len, texts)) + frame.cost(False)
            divided = divided * 2 if len(divided) == 1 else divided
            layout = [len(each.rows) for each in divided]
            sizes = {"dropped": dropped, "full_length": full, "windows": max(layout)}
            rows = tuple(row for each in divided for row in each.rows)
            items.append(Item(number, rows, example.score, layout=layout, **sizes))
        return items

    def outputs(self, model: nn.Module, batch: LabeledBatch) -> Tensor:
        """The vectors of all rows, [rows, D]; on a CPU those of similar length are computed together."""
        if batch.device.type != "cpu":
            return super().outputs(model, batch)
        rows = [row for item in batch.items for row in item.rows]
        order = sorted(range(len(rows)), key=lambda number: -rows[number].length)
        batches = (batch_of(part, batch.pad_id, batch.device) for part in _parts([rows[i] for i in order]))
        return torch.cat([model(*inputs) for inputs in batches])[torch.tensor(order).argsort()]

    def joint_term(self, outputs: Tensor, batches: Sequence[LabeledBatch]) -> Term:
        items = tuple(item for batch in batches for item in batch.items)
        return self.term(outputs, LabeledBatch(items, batches[0].pad_id))

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        """The vectors of the texts, [items, texts, D]."""
        sizes = [size for item in batch.items for size in item.layout]
        lengths = [row.length for item in batch.items for row in item.rows]
        return self.windows.join(logits.float(), sizes, lengths).unflatten(0, (len(batch.items), -1))

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        vectors_BCD = self.answers(logits, batch)
        if self.has_scores:
            scores_B = torch.tensor([item.target for item in batch.items], device=logits.device)
            loss = compared.cosent_loss(vectors_BCD, scores_B, self.settings.scale)
        else:
            keys = [_keys(item) for item in batch.items]
            loss = compared.ranking_loss(vectors_BCD, keys, self.settings.scale)
        return Term(loss * len(batch.items))

    def split_logits(self, logits: Tensor, batch: LabeledBatch) -> list[Tensor]:
        """The vectors of each item, [texts, D]."""
        return list(self.answers(logits, batch))

    def predict(self, example: SimilarExample, items: Items, logits: Logits) -> Vectors:
        return Vectors(logits[0], _keys(items[0]), example.score)

    def join(self, predictions: Sequence[Vectors]) -> tuple[float | None, list[Prediction]]:
        """The loss, and each positive's rank among all texts, or each pair's place by its cosine."""
        vectors_BCD = torch.stack([each.vectors_CD for each in predictions])
        if self.has_scores:
            scores_B = torch.tensor([each.score for each in predictions])
            loss = compared.cosent_loss(vectors_BCD, scores_B, self.settings.scale)
            return float(loss), list(compared.compare_pairs(vectors_BCD, scores_B))
        keys = [each.keys for each in predictions]
        loss, ranked = compared.rank_positives(vectors_BCD, keys, self.settings.scale)
        return loss, list(ranked)

    def is_right(self, example: SimilarExample, prediction: compared.Ranked | compared.Scored) -> bool:
        """True if the positive has rank 1; with scores, if the places by cosine and by score are close."""
        return prediction.is_right

    def score(
        self,
        examples: Sequence[SimilarExample],
        predictions: Sequence[compared.Ranked | compared.Scored],
    ) -> Mapping[str, Any]:
        """The scores of the predictions that `join` gives."""
        if self.has_scores:
            cosines = [each.similarity for each in predictions]
            found = correlation_scores([each.score or 0.0 for each in examples], cosines)
            return {name: found[name] for name in ("spearman", "pearson")}
        ranked = cast(Sequence[compared.Ranked], predictions)
        ranking = ranking_scores([each.rank for each in ranked])
        return ranking | {"candidates": max(each.candidates for each in ranked)}

    def verdict(self, examples: Sequence[SimilarExample], metrics: Mapping[str, Any]) -> Verdict:
        """The verdict beside texts, or pairs with scores, in random order."""
        n = len(examples)
        if self.has_scores:
            return _scores_verdict([example.score for example in examples], metrics["spearman"])
        candidates, mrr = metrics["candidates"], metrics["mrr"]
        baseline = random_order(candidates)
        if candidates < 2:
            return no_score(baseline, "there is one text to find alone")
        chance, reciprocal = baseline["mrr"], 1 / np.arange(1, candidates + 1)
        said, blind = f"mrr {mrr:.4g}", f"{candidates:,} texts in random order ({chance:.4g})"
        noise = SURE * float(reciprocal.std()) / math.sqrt(n)
        better = Verdict(True, baseline, f"{said} is {mrr - chance:.4g} above {blind}")
        return unless_noise(better, said, blind, score=mrr, chance=chance, noise=noise, rows=n)

    def right_answer(self, example: SimilarExample) -> str | float:
        """The positive, or the score of a pair."""
        return example.texts[1] if example.score is None else example.score

    def mistake(self, example: SimilarExample, prediction: Any, examples: Sequence[Any]) -> Mistake:
        """The positive and the nearest text of `examples`; or a pair and its score."""
        return prediction.mistake(example, examples)


def _scores_verdict(scores: Sequence[float | None], spearman: float) -> Verdict:
    n, baseline = len(scores), {"spearman": 0.0, "pearson": 0.0}
    if len(set(scores)) == 1:
        return no_score(baseline, f"every pair has the score {scores[0]:g}")
    said, blind, noise = f"spearman {spearman:.4g}", "pairs in random order", SURE / math.sqrt(n)
    better = Verdict(True, baseline, f"{said}, where {blind} give 0")
    return unless_noise(better, said, f"{blind} (0)", score=spearman, chance=0, noise=noise, rows=n)


def _parts(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows, the longest first, in parts of about `_TOKENS_AT_ONCE` tokens with padding."""
    start = 0
    while start < len(rows):
        stop = start + max(1, _TOKENS_AT_ONCE // rows[start].length)
        yield list(rows[start:stop])
        start = stop


def _keys(item: Item) -> tuple[compared.Key, ...]:
    """The key of each text; texts are equal if the model reads the same tokens."""
    rows = iter(item.rows)
    return tuple(tuple(id_ for row in islice(rows, size) for id_ in row.ids) for size in item.layout)
