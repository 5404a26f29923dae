"""The word embeddings of a fine-tuning run: those of the words that occur in its labeled files, no more.

The others get no gradient, yet AdamW would hold moments for them and pass over them at every step. They are
half of a small model, and of a multilingual one; a labeled file holds a fraction of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn

from bertcli.data.rows import Row
from bertcli.tasks.data import LabeledData, Split
from bertcli.model.task_models import TaskModel

_TABLE = "bert.embeddings.word.weight"


class OccurringWords:
    """The words that occur (U of the V), numbered among themselves.

    The others keep their embeddings: AdamW does not decay them either.

    Attributes:
        pad_id: the number of [PAD].
        left_out: weights of the others.
    """

    def __init__(self, model: TaskModel, data: LabeledData, pad_id: int):
        """`data`, train and dev, as encoded for the whole `model`."""
        self._table_VD = model.bert.embeddings.word.weight.detach()
        occurs_V = np.zeros(len(self._table_VD), dtype=np.bool_)
        occurs_V[pad_id] = True
        for item in chain(data.train.items, data.dev.items if data.dev else []):
            for row in item.rows:
                occurs_V[list(row.ids)] = True
        self._numbers_V = np.cumsum(occurs_V) - 1
        self._ids_U = torch.from_numpy(np.flatnonzero(occurs_V))
        self.pad_id = int(self._numbers_V[pad_id])
        self.left_out = self._table_VD.numel() - len(self) * self._table_VD.shape[1]

    def __len__(self) -> int:
        return len(self._ids_U)

    def narrow_data(self, data: LabeledData) -> LabeledData:
        """Rows of the words' numbers instead of ids."""
        return replace(data, train=self._split(data.train), dev=self._split(data.dev) if data.dev else None)

    def narrow_model(self, model: TaskModel) -> None:
        """Leave `model` the embeddings of these words alone; its `architecture` stays the whole one's."""
        trained = model.bert.embeddings.word.weight.requires_grad
        table_UD = self._table_VD[self._ids_U]
        model.bert.embeddings.word = nn.Embedding.from_pretrained(table_UD, freeze=not trained)

    def narrow_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of a whole model -> those of a narrow one."""
        return {**weights, _TABLE: weights[_TABLE][self._ids_U]}

    def widen_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of a narrow model -> those of a whole one."""
        table_VD = self._table_VD.index_copy(0, self._ids_U, weights[_TABLE].to(self._table_VD))
        return {**weights, _TABLE: table_VD}

    def _split(self, split: Split) -> Split:
        items = [replace(item, rows=tuple(map(self._row, item.rows))) for item in split.items]
        return Split(split.examples, items)

    def _row(self, row: Row) -> Row:
        return replace(row, ids=self._numbers_V[list(row.ids)].tolist())
