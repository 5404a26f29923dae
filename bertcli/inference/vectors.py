"""An encoder and a stream of texts -> one vector a text, in the same order."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.batches.batch import batch_of
from bertcli.corpus.streams import import_extra
from bertcli.folders.lengths import LongRows
from bertcli.folders.sentence_transformers import SentencePooling
from bertcli.inference.onnx_model import OnnxModel, is_quantized, one_thread
from bertcli.inference.outputs import CutRows, aside
from bertcli.inference.predict import Answers, AsRead, by_length, in_buffers, only_numbers
from bertcli.model.task_models import PooledModel, pool
from bertcli.system.errors import UserError
from bertcli.system.files import is_cut, refuse_special
from bertcli.system.hardware import Precision, autocast
from bertcli.tasks.examples import TextExample
from bertcli.tasks.text_task import Divided, Windows
from bertcli.tokenizer.frame import Row
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text with its vector, fp32 [hidden] on the CPU, and how many of its tokens were cut off."""

    text: str
    vector_D: Tensor
    dropped: int


@dataclass(frozen=True)
class Embedder:
    """An encoder that gives the vectors of texts (Reimers and Gurevych 2019, section 3).

    The vectors of an encoder that was not trained for vectors all have nearly the same direction: their
    cosines are close to 1, and only the order of the cosines has a meaning. `count` is called with the
    lengths of rows.
    """

    model: PooledModel | OnnxModel
    tokenizer: Tokenizer
    pooling: SentencePooling
    device: torch.device
    precision: Precision
    batch_size: int
    count: Callable[[Iterable[int]], None] = lambda lengths: None

    def reading(self, long_rows: LongRows, batch_size: int | None = None, **pooling: Any) -> Embedder:
        """The embedder with the user's values of `SentencePooling` and batch size (None: its own).

        `long_rows` counts the rows that it reads.
        """
        given = {key: value for key, value in pooling.items() if value is not None}
        own, size = replace(self.pooling, **given), batch_size or self.batch_size
        return replace(self, pooling=own, batch_size=size, count=long_rows.count)

    def embed(self, texts: Iterable[TextExample]) -> Iterator[Embedded]:
        """The vectors in the order of `texts`; only a bounded number of texts is in memory at once.

        The model must be in evaluation mode.
        """
        for some in in_buffers(texts, self.batch_size):
            divided = self.divide([text.texts[0] for text in some])
            for text, vector_D, each in zip(some, self.vectors(divided), divided, strict=True):
                yield Embedded(text.texts[0], vector_D, each.dropped)

    def divide(self, texts: Sequence[str]) -> list[Divided]:
        """The rows of each text."""
        windows, frame = self._windows, self.tokenizer.frame
        return [windows.divide(ids, None, frame) for ids in self.tokenizer.encode_batch(texts)]

    def vectors(self, divided: Sequence[Divided]) -> list[Tensor]:
        """The vector_D of each text, fp32 on the CPU, from its rows."""
        rows = [row for each in divided for row in each.rows]
        lengths = [row.length for row in rows]
        self.count(lengths)
        vectors_RD = torch.stack(by_length(rows, self.batch_size, self._compute))
        vectors_ND = self._windows.join(vectors_RD, [len(each.rows) for each in divided], lengths)
        return [
            # The mean of unit vectors is shorter.
            F.normalize(vector_D, dim=-1) if self.pooling.normalize and len(each.rows) > 1 else vector_D
            for vector_D, each in zip(vectors_ND, divided, strict=True)
        ]

    @property
    def _windows(self) -> Windows:
        own, positions = self.pooling, self.model.architecture.usable_positions
        longest = positions if own.max_length is None else own.max_length
        return Windows(own.windows, longest, own.doc_stride, most=own.max_windows)

    def matrix(self, texts: Iterable[TextExample], cut: CutRows) -> Tensor:
        """The vectors of `texts`, fp32 [texts, hidden] on the CPU; `cut` counts them."""
        return torch.stack([embedded.vector_D for embedded in cut.watch(self.embed(texts))])

    @torch.inference_mode()
    def _compute(self, rows: list[Row]) -> list[Tensor]:
        batch = batch_of(rows, self.tokenizer.pad_id, self.device)
        with one_thread(self.model):
            with autocast(self.precision, self.device):
                hidden_BTD = self.model(*batch)
            vectors_BD = pool(hidden_BTD.float(), batch.mask_BT, self.pooling.mode)
            if self.pooling.normalize:
                vectors_BD = F.normalize(vectors_BD, dim=-1)
            return list(only_numbers(vectors_BD.cpu()))


class Vectors(Answers):
    """Texts -> their vectors, fp32 [hidden]."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder, self.together = embedder, not is_quantized(embedder.model)

    def encode(self, question: str) -> AsRead:
        (divided,) = self.embedder.divide([question])
        return AsRead(divided, sum(row.length for row in divided.rows), divided.dropped)

    def compute(self, several: Sequence[AsRead]) -> list[Tensor]:
        return self.embedder.vectors([each.content for each in several])


@dataclass(frozen=True)
class Near:
    """A text and its cosine with the query."""

    example: TextExample
    similarity: float


def nearest(
    queries_QD: Tensor,
    examples: Iterable[TextExample],
    vectors_of: Callable[[Sequence[TextExample]], Tensor],
    batch_size: int,
    top: int,
) -> list[list[Near]]:
    """The `top` nearest texts to each query, the nearest first; among equally near ones the earlier first.

    Only a bounded number of texts is in memory at once. Empty texts are left out.

    Args:
        queries_QD: the vectors of the queries, fp32, of any length.
        vectors_of: the vectors [N, D] of N examples; called on all of them, in order.
        batch_size: as in `inference.predict.in_buffers`.
    """
    unit_QD = F.normalize(queries_QD, dim=-1)
    best: list[list[Near]] = [[] for _ in queries_QD]
    for some in in_buffers(examples, batch_size):
        cosines_QN = unit_QD @ F.normalize(vectors_of(some), dim=-1).T
        empty = [number for number, example in enumerate(some) if not example.texts[0].strip()]
        cosines_QN[:, empty] = -torch.inf
        found = cosines_QN.sort(dim=1, descending=True, stable=True)  # topk keeps no order among equal ones
        cosines_QK, numbers_QK = found.values[:, :top].tolist(), found.indices[:, :top].tolist()
        for query, (cosines, numbers) in enumerate(zip(cosines_QK, numbers_QK, strict=True)):
            near = [
                Near(some[number], cosine)
                for cosine, number in zip(cosines, numbers, strict=True)
                if cosine > -torch.inf
            ]
            best[query] = heapq.nlargest(top, [*best[query], *near], key=lambda each: each.similarity)
    return best


class VectorFile:
    """A .npy file with a vector for each text, read block by block."""

    def __init__(self, path: Path, hidden: int):
        """Open the file. Raises `UserError` if it is unreadable, or if vectors do not have `hidden`
        numbers."""
        self._path, self._next = path, 0
        refuse_special(path)
        try:
            with np.errstate(over="ignore"):  # a size beyond all memory is refused all the same
                self._vectors_ND = np.lib.format.open_memmap(path, mode="r")  # never a pickle
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
        except Exception:  # the header is Python's syntax: numpy fails in many ways on other bytes
            raise UserError(f"{path}: is no .npy file of numbers; make it by bertcli embed") from None
        shape, dtype = self._vectors_ND.shape, self._vectors_ND.dtype
        if len(shape) != 2 or shape[1] != hidden or dtype.kind != "f":
            raise UserError(
                f"{path}: holds {dtype} of the shape {list(shape)}; expected a row of {hidden} "
                "floating-point numbers for each text: make it by bertcli embed with the same model"
            )

    def take(self, examples: Sequence[TextExample]) -> Tensor:
        """The vectors of these examples, the next ones in the file. Raises `UserError` if there are fewer, or
        one is NaN, infinite or too long."""
        start, self._next = self._next, self._next + len(examples)
        if self._next > len(self._vectors_ND):
            raise self._differs("more")
        if is_cut(self._vectors_ND):
            raise UserError(f"{self._path}: was cut while it was in use; make it again by bertcli embed")
        with np.errstate(over="ignore"):
            vectors_ND = torch.from_numpy(np.array(self._vectors_ND[start : self._next], np.float32))
        if len(bad := (~vectors_ND.norm(dim=-1).isfinite()).nonzero()):
            raise UserError(
                f"{self._path}: vector {start + int(bad[0]) + 1:,} is NaN, infinite or too long; make the "
                "file again by bertcli embed"
            )
        return vectors_ND

    def check_end(self) -> None:
        """Raise `UserError` if there are vectors left."""
        if self._next < len(self._vectors_ND):
            raise self._differs(f"only {self._next:,}")

    def _differs(self, texts: str) -> UserError:
        return UserError(
            f"{self._path}: holds {len(self._vectors_ND):,} vectors, but the input has {texts} texts; make "
            "it again from that file: bertcli embed MODEL --input FILE --output FILE.npy"
        )


SUFFIXES = (".npy", ".jsonl", ".parquet")
PARQUET_ROWS = 4096
"""Rows of a row group, which is held in memory."""


def vector_line(embedded: Embedded) -> str:
    """A text and its vector as a line of JSON."""
    line = {"text": embedded.text, "vector": embedded.vector_D.tolist()}
    return json.dumps(line, ensure_ascii=False) + "\n"


def write_vectors(path: Path, vectors: Iterable[Embedded], hidden: int) -> None:
    """Write all `vectors` of `hidden` numbers in the format of the suffix, atomically (`outputs.aside`).

    Raises `UserError` if pyarrow is missing, and `OSError` if the file cannot be written.
    """
    with aside(path) as partial:
        if path.suffix == ".parquet":
            _write_parquet(partial, vectors, hidden)
        elif path.suffix == ".npy":
            with open(partial, "wb") as file:
                _write_npy(file, vectors, hidden)
        else:
            with open(partial, "w", encoding="utf-8") as lines:
                lines.writelines(map(vector_line, vectors))


def _write_npy(file: BinaryIO, vectors: Iterable[Embedded], hidden: int) -> None:
    """Write the vectors. The header, in which NumPy leaves room, is rewritten at the end, when their number
    is known."""
    _write_header(file, 0, hidden)
    start, count = file.tell(), 0
    for embedded in vectors:
        file.write(embedded.vector_D.numpy().astype("<f4", copy=False).tobytes())
        count += 1
    file.seek(0)
    _write_header(file, count, hidden)
    assert file.tell() == start


def _write_header(file: BinaryIO, count: int, hidden: int) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, hidden)}
    np.lib.format.write_array_header_1_0(file, header)


def _write_parquet(path: Path, vectors: Iterable[Embedded], hidden: int) -> None:
    arrow, parquet = (
        import_extra(name, "parquet", f"{path} is a Parquet file") for name in ("pyarrow", "pyarrow.parquet")
    )
    schema = arrow.schema([("text", arrow.string()), ("vector", arrow.list_(arrow.float32(), hidden))])
    with parquet.ParquetWriter(path, schema) as writer:
        rows = iter(vectors)
        while some := list(islice(rows, PARQUET_ROWS)):
            flat = np.concatenate([embedded.vector_D.numpy() for embedded in some])
            column = arrow.FixedSizeListArray.from_arrays(arrow.array(flat, arrow.float32()), hidden)
            texts = arrow.array([embedded.text for embedded in some], arrow.string())
            writer.write_table(arrow.Table.from_arrays([texts, column], schema=schema))
