"""Make the stored outputs: a tiny random model and what transformers computes from it.

    python -m tests.parity.golden.make_golden

Writes `model/` and `outputs.safetensors` beside this file. Needs transformers; the check does not.
"""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save_file
from transformers import BertForPreTraining

from tests.folders.folders import saved_model
from tests.parity.outputs import batch
from tests.parity.transformers_side import their_outputs

HERE = Path(__file__).parent


def main() -> None:
    saved_model(HERE / "model", seed=1)
    theirs = BertForPreTraining.from_pretrained(HERE / "model", attn_implementation="eager").eval()
    outputs = {}
    for case in ("padded", "full"):
        for name, value in their_outputs(theirs, batch(padded=case == "padded")).items():
            outputs[f"{case}.{name}"] = value.clone()
    save_file(outputs, HERE / "outputs.safetensors")


if __name__ == "__main__":
    main()
