"""Against stored outputs of transformers, so that the check needs no transformers."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from bertcli.folders.model_folder import load_model_folder
from tests.parity.outputs import assert_equal_at_real_positions, batch, our_outputs

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("case", ["padded", "full"])
def test_outputs_equal_the_stored_ones(case):
    stored = load_file(GOLDEN / "outputs.safetensors")
    want = {
        name.removeprefix(f"{case}."): value for name, value in stored.items() if name.startswith(f"{case}.")
    }
    inputs = batch(padded=case == "padded")
    got = our_outputs(load_model_folder(GOLDEN / "model").model.eval(), inputs)
    assert_equal_at_real_positions(got, want, inputs[2])
