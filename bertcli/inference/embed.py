"""An encoder and a stream of texts -> one vector a text, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.data.rows import batch_of
from bertcli.examples.examples import TextExample
from bertcli.hardware import Precision, autocast
from bertcli.hf.sentence_transformers import SentencePooling
from bertcli.inference.buffers import in_buffers
from bertcli.inference.onnx_model import OnnxModel
from bertcli.inference.rows import by_length, only_numbers
from bertcli.model.pooling import pool
from bertcli.model.task_models import PooledModel
from bertcli.text.frame import Row
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text with its vector, fp32 [hidden] on the CPU, and how many of its tokens were cut off."""

    text: str
    vector_D: Tensor
    dropped: int


@dataclass(frozen=True)
class Embedder:
    """Computes the vectors of texts (Reimers and Gurevych 2019, section 3).

    Without training for it, the vectors of an encoder all have nearly the same direction: their cosines are
    close to 1, and only the order of the cosines has a meaning. `count` is called with the lengths of rows.
    """

    model: PooledModel | OnnxModel
    tokenizer: Tokenizer
    pooling: SentencePooling
    device: torch.device
    precision: Precision
    batch_size: int
    count: Callable[[Iterable[int]], None] = lambda lengths: None

    def embed(self, texts: Iterable[TextExample]) -> Iterator[Embedded]:
        """The vectors in the order of `texts`; only a bounded number of texts is in memory at once.

        The model must be in evaluation mode.
        """
        positions = self.model.architecture.usable_positions
        longest = positions if self.pooling.max_length is None else self.pooling.max_length
        frame = self.tokenizer.frame
        for some in in_buffers(texts, self.batch_size):
            encoded = self.tokenizer.encode_batch([text.text_a for text in some])
            rows = [frame.fit(ids, None, longest) for ids in encoded]
            self.count(row.length for row in rows)
            vectors = by_length(rows, self.batch_size, self._compute)
            for text, ids, row, vector_D in zip(some, encoded, rows, vectors, strict=True):
                yield Embedded(text.text_a, vector_D, len(ids) + frame.cost(pair=False) - row.length)

    def matrix(
        self,
        texts: Iterable[TextExample],
        watch: Callable[[Iterable[Embedded]], Iterable[Embedded]] = lambda embedded: embedded,
    ) -> Tensor:
        """The vectors of `texts`, fp32 [texts, hidden] on the CPU; `watch` sees each of them."""
        return torch.stack([embedded.vector_D for embedded in watch(self.embed(texts))])

    @torch.inference_mode()
    def _compute(self, rows: list[Row]) -> list[Tensor]:
        batch = batch_of(rows, self.tokenizer.pad_id, self.device)
        with autocast(self.precision, self.device):
            hidden_BTD = self.model(batch.ids_BT, batch.segments_BT, batch.mask_BT)
        vectors_BD = pool(hidden_BTD.float(), batch.mask_BT, self.pooling.mode)
        if self.pooling.normalize:
            vectors_BD = F.normalize(vectors_BD, dim=-1)
        return list(only_numbers(vectors_BD.cpu()))
