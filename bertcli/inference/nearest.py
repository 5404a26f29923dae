"""The texts of a stream whose vectors are nearest to those of some queries, by cosine."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.errors import UserError
from bertcli.examples.examples import TextExample
from bertcli.files import is_cut, refuse_special
from bertcli.inference.buffers import in_buffers


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
    """For each query the `top` nearest texts, the nearest first; of equally near ones the earlier.

    Only a bounded number of texts is in memory at once. Empty texts are left out.

    Args:
        queries_QD: fp32, of any length.
        vectors_of: the vectors [N, D] of N examples; called on all of them, in order.
        batch_size: as in `inference.buffers.in_buffers`.
    """
    unit_QD = F.normalize(queries_QD, dim=-1)
    best: list[list[Near]] = [[] for _ in queries_QD]
    for some in in_buffers(examples, batch_size):
        cosines_QN = unit_QD @ F.normalize(vectors_of(some), dim=-1).T
        empty = [number for number, example in enumerate(some) if not example.text_a.strip()]
        cosines_QN[:, empty] = -torch.inf
        found = cosines_QN.sort(dim=1, descending=True, stable=True)  # topk would take any of equal ones
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
        """Raises `UserError` if it cannot be read, or its vectors have not `hidden` numbers."""
        self._path, self._next = path, 0
        refuse_special(path)
        try:
            with np.errstate(over="ignore"):  # a size beyond all memory is refused all the same
                self._vectors_ND = np.lib.format.open_memmap(path, mode="r")  # never a pickle
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
        except Exception:  # the header is Python's syntax: numpy fails in many ways on what is none
            raise UserError(f"{path}: is no .npy file of numbers; make it by bertcli embed") from None
        shape, dtype = self._vectors_ND.shape, self._vectors_ND.dtype
        if len(shape) != 2 or shape[1] != hidden or dtype.kind != "f":
            raise UserError(
                f"{path}: holds {dtype} of the shape {list(shape)}; expected a row of {hidden} "
                "floating-point numbers for each text: make it by bertcli embed with the same model"
            )

    def take(self, examples: Sequence[TextExample]) -> Tensor:
        """The next vectors. Raises `UserError` if there are fewer, or one is NaN, infinite or too long."""
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
        """Raises `UserError` if there are vectors left."""
        if self._next < len(self._vectors_ND):
            raise self._differs(f"only {self._next:,}")

    def _differs(self, texts: str) -> UserError:
        return UserError(
            f"{self._path}: holds {len(self._vectors_ND):,} vectors, but the input has {texts} texts; make "
            "it again from that file: bertcli embed MODEL --input FILE --output FILE.npy"
        )
