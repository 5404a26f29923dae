"""An ONNX file as a model: rows -> its outputs, by onnxruntime on the CPU.

The names of inputs and outputs are those that transformers' classes use, as do the files on the hub.
"""

import contextlib
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from bertcli.corpus.streams import import_extra
from bertcli.model.architecture import Architecture
from bertcli.system.errors import UserError

IDS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
"""The names of the inputs: int64 [B, T], or [B, choices, T]; the mask has 1 at real tokens."""
HIDDEN, LOGITS = "last_hidden_state", "logits"
SPANS = ("start_logits", "end_logits")
_CALL_TOKENS = 12
"""Tokens that are computed in the time that one more call takes."""
_ERRORS_ONLY = 3


class OnnxModel(nn.Module):
    """A model with the interface of `model.task_models`, without parameters.

    Raises `UserError`: onnxruntime is not installed, it cannot read the file, or the file has inputs that
    rows do not give.
    """

    def __init__(self, file: Path, architecture: Architecture) -> None:
        """`architecture` is that of the model folder."""
        super().__init__()
        self.file, self.architecture = file, architecture
        self._session = _open(file)
        self._ranks = {each.name: len(each.shape) for each in self._session.get_inputs()}
        self.outputs = tuple(each.name for each in self._session.get_outputs())
        if not {IDS} <= self._ranks.keys() <= {IDS, MASK, SEGMENTS}:
            raise UserError(
                f"{file}: its inputs are {', '.join(self._ranks)}, and bertcli gives {IDS}, {MASK} and "
                f"{SEGMENTS}; export the model again (bertcli export)"
            )

    def need(self, *outputs: str) -> None:
        """Raise `UserError` unless the file has these outputs."""
        if not set(outputs) <= set(self.outputs):
            what = "with --encoder" if HIDDEN in outputs else "after it was fine-tuned"
            raise UserError(
                f"{self.file}: its outputs are {', '.join(self.outputs)}, and this needs "
                f"{' and '.join(outputs)}; export the model {what} (bertcli export)"
            )

    def run(self, ids: Tensor, segments: Tensor, mask: Tensor | None = None) -> list[Tensor]:
        """All outputs, in the order of `outputs`; the arguments are the file's inputs."""
        given = {IDS: ids, MASK: torch.ones_like(ids) if mask is None else mask, SEGMENTS: segments}
        feeds = {name: given[name].long().numpy() for name in self._ranks}
        try:
            outputs = self._session.run(None, feeds)
        except Exception as error:  # onnxruntime's errors have no common class of their own
            raise UserError(
                f"{self.file}: onnxruntime cannot compute it: {_first_line(error)}. Export the model again, "
                "with inputs of any length (bertcli export)"
            ) from None
        if any(np.isnan(output).any() for output in outputs):
            raise UserError(
                f"{self.file}: its outputs are not numbers (NaN): its weights are damaged, or the training "
                "diverged. Export the model again from weights that are finite (bertcli export)"
            )
        return [torch.from_numpy(output) for output in outputs]

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The hidden states (hidden_BTD), or the logits of `model.task_models` for the same rows.

        A call computes padding too, so rows of other lengths have calls of their own. Padding is on the
        right; the longest row has none.
        """
        if self._ranks[IDS] == 3:
            # All rows as the choices of one question: their logits do not depend on each other.
            mask = torch.ones_like(ids_BT) if mask_BT is None else mask_BT
            (logits_1B,) = self.run(ids_BT[None], segments_BT[None], mask[None])
            return logits_1B.mT
        if mask_BT is None:
            return self._answer(ids_BT, segments_BT, None)
        found: dict[int, Tensor] = {}
        for rows, length in _of_similar_length(mask_BT.sum(dim=1).tolist()):
            some = (each[rows, :length] for each in (ids_BT, segments_BT, mask_BT))
            found.update(zip(rows, self._answer(*some), strict=True))
        return pad_sequence([found[row] for row in range(len(ids_BT))], batch_first=True)

    def _answer(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None) -> Tensor:
        found = dict(zip(self.outputs, self.run(ids_BT, segments_BT, mask_BT), strict=True))
        if set(SPANS) <= found.keys():
            return torch.stack([found[name] for name in SPANS], dim=-1)
        return found[HIDDEN] if HIDDEN in found else found[LOGITS]


def _of_similar_length(lengths: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """The numbers of rows for each call, and the longest of their lengths."""
    rows, longest, padding = list[int](), 0, 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if rows and padding + longest - lengths[row] > _CALL_TOKENS:
            yield rows, longest
            rows, padding = [], 0
        longest = longest if rows else lengths[row]
        rows, padding = [*rows, row], padding + longest - lengths[row]
    yield rows, longest


@contextlib.contextmanager
def one_thread(model: nn.Module) -> Iterator[None]:
    """Let torch compute with one thread, if onnxruntime computes the model.

    Torch's other threads wait for their next work in a loop, and would take the cores from onnxruntime's.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if isinstance(model, OnnxModel) else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def is_quantized(model: nn.Module) -> bool:
    """True for an ONNX file that rounds its activations, on one scale for all rows of a batch.

    The names of its operators stand in the file as they are.
    """
    if not isinstance(model, OnnxModel):
        return False
    with open(model.file, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"DynamicQuantize") >= 0


def import_onnxruntime(reason: str) -> Any:
    """The package, which reports to nobody: by itself it does, to its maker."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    return import_extra("onnxruntime", "onnx", reason, doing="running it")


def _open(file: Path) -> Any:
    runtime = import_onnxruntime(f"{file} is an ONNX file")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.force_spinning_stop", "1")  # leave the cores to others
    try:
        return runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common class of their own
        raise UserError(
            f"{file}: onnxruntime cannot open it: {_first_line(error)}. Copy the file again, or export it "
            "again"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
