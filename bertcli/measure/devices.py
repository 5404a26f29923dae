"""GPUs by name, with rates and memory from their data sheets, for estimates without the device."""

from __future__ import annotations

from dataclasses import dataclass

from bertcli.errors import UserError
from bertcli.hardware import Precision

SHARE_OF_PEAK = 0.35
"""Share of a GPU's stated rate that training an encoder reaches, counted as in `model.flops`; an assumption.
NVIDIA's own BERT-large reaches 45 % in fp16 on an A100 (580 sequences of 128 tokens a second;
DeepLearningExamples, PyTorch/LanguageModeling/BERT) with special kernels; plain code reaches less."""


@dataclass(frozen=True)
class KnownDevice:
    """A GPU, by its data sheet.

    Attributes:
        half: dense 16-bit matrix products with fp32 sums, operations a second.
        has_bf16: whether `half` holds for bf16 too; else only for fp16.
        fp32: fp32 products outside the tensor cores, as torch computes them by default.
        memory: bytes.
    """

    half: float
    has_bf16: bool
    fp32: float
    memory: float

    @property
    def precision(self) -> Precision:
        """The value of `precision: auto` on this GPU."""
        return "bf16" if self.has_bf16 else "fp16"

    def rate(self, precision: Precision) -> float:
        """Operations a second. bf16 without hardware support is as fast as fp32."""
        return self.half if precision == "fp16" or (precision == "bf16" and self.has_bf16) else self.fp32


KNOWN_DEVICES = {
    "b200": KnownDevice(2250e12, True, 80e12, memory=180e9),
    "h200": KnownDevice(989e12, True, 67e12, memory=141e9),
    "h100": KnownDevice(989e12, True, 67e12, memory=80e9),
    "a100-80gb": KnownDevice(312e12, True, 19.5e12, memory=80e9),
    "a100-40gb": KnownDevice(312e12, True, 19.5e12, memory=40e9),
    "l40s": KnownDevice(362e12, True, 91.6e12, memory=48e9),
    "l4": KnownDevice(121e12, True, 30.3e12, memory=24e9),
    "rtx4090": KnownDevice(165e12, True, 82.6e12, memory=24e9),
    "rtx3090": KnownDevice(71e12, True, 35.6e12, memory=24e9),
    "v100-16gb": KnownDevice(125e12, False, 15.7e12, memory=16e9),
    "t4": KnownDevice(65e12, False, 8.1e12, memory=16e9),
}
"""From NVIDIA's data sheets (for the RTX cards the Ada and Ampere GA102 architecture papers): SXM variants,
rates without sparsity."""


def known_device(name: str) -> KnownDevice:
    """The device of that name. Raises `UserError` for one that is not in the table."""
    try:
        return KNOWN_DEVICES[name.lower()]
    except KeyError:
        raise UserError(
            f"--device {name}: is unknown; give one of {', '.join(KNOWN_DEVICES)}, or leave "
            "it out to measure this machine"
        ) from None
