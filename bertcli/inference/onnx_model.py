"""An ONNX file as a model: rows -> its outputs, by onnxruntime on the CPU.

The names of inputs and outputs are those that transformers' classes use, as do the files on the hub.
"""

import mmap
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.corpus.streams import import_extra
from bertcli.model.architecture import Architecture
from bertcli.system.errors import UserError

IDS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
"""The names of the inputs: int64 [B, T], or [B, choices, T]; the mask has 1 at real tokens."""
HIDDEN, LOGITS = "last_hidden_state", "logits"
SPANS = ("start_logits", "end_logits")
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
        outputs = [torch.from_numpy(output) for output in self._session.run(None, feeds)]
        if any(output.isnan().any() for output in outputs):
            raise UserError(
                f"{self.file}: its outputs are not numbers (NaN): its weights are damaged, or the training "
                "diverged. Export the model again from weights that are finite (bertcli export)"
            )
        return outputs

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The hidden states (hidden_BTD), or the logits of `model.task_models` for the same rows."""
        if self._ranks[IDS] == 2:
            found = dict(zip(self.outputs, self.run(ids_BT, segments_BT, mask_BT), strict=True))
            if set(SPANS) <= found.keys():
                return torch.stack([found[name] for name in SPANS], dim=-1)
            return found[HIDDEN] if HIDDEN in found else found[LOGITS]
        # All rows as the choices of one question: their logits do not depend on each other.
        mask = torch.ones_like(ids_BT) if mask_BT is None else mask_BT
        (logits_1B,) = self.run(ids_BT[None], segments_BT[None], mask[None])
        return logits_1B.mT


def is_quantized(model: nn.Module) -> bool:
    """True for an ONNX file that rounds its activations, on one scale for all rows of a batch.

    The names of its operators stand in the file as they are.
    """
    if not isinstance(model, OnnxModel):
        return False
    with open(model.file, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"DynamicQuantize") >= 0


def _open(file: Path) -> Any:
    runtime = import_extra("onnxruntime", "onnx", f"{file} is an ONNX file", doing="running it")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = _ERRORS_ONLY
    try:
        return runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common class of their own
        reason = str(error).strip().split("\n")[0]
        raise UserError(
            f"{file}: onnxruntime cannot open it: {reason}. Copy the file again, or export it again"
        ) from None
