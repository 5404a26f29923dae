"""The same batch through both implementations -> the same names of results, to be compared."""

from __future__ import annotations

import torch
from torch import Tensor

from bertcli.model.pretraining import PretrainingModel

B, T, V = 3, 13, 37
LENGTHS = (13, 4, 7)


def batch(padded: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """ids, segments and mask of three rows; `padded`: of 13, 4 and 7 real tokens."""
    generator = torch.Generator().manual_seed(11)
    ids_BT = torch.randint(V, (B, T), generator=generator)
    segments_BT = (torch.arange(T) >= torch.tensor([[5], [2], [3]])).long()
    mask_BT = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    return (ids_BT * mask_BT, segments_BT, mask_BT) if padded else (ids_BT, segments_BT, None)


@torch.no_grad()
def our_outputs(model: PretrainingModel, inputs: tuple[Tensor, Tensor, Tensor | None]) -> dict[str, Tensor]:
    """Hidden states of every layer, attention probabilities, pooled output and the logits of both heads."""
    hidden_states, probabilities = model.body.trace(*inputs)
    last_BTD = model.body(*inputs)
    output = model(*inputs)
    assert model.pooler is not None
    return {
        **{f"hidden_{i}": value for i, value in enumerate(hidden_states)},
        **{f"attention_{i}": value for i, value in enumerate(probabilities)},
        "last_hidden": last_BTD,
        "pooled": model.pooler(last_BTD[:, 0]),
        "mlm_logits": output.mlm_logits_MV.unflatten(0, inputs[0].shape),
        "nsp_logits": output.pair_logits_B2,
    }


def assert_equal_at_real_positions(
    got: dict[str, Tensor], want: dict[str, Tensor], mask_BT: Tensor | None
) -> None:
    """To 1e-5, absolute and relative, in fp32."""
    assert got.keys() == want.keys()
    real_BT = torch.ones(B, T, dtype=torch.bool) if mask_BT is None else mask_BT
    for name, value in want.items():
        if name.startswith("attention"):  # [B, N, T, T]: rows by token, compared where the row is real
            pick = lambda tensor: tensor.transpose(1, 2)[real_BT]  # noqa: E731
        elif name in ("pooled", "nsp_logits"):
            pick = lambda tensor: tensor  # noqa: E731
        else:
            pick = lambda tensor: tensor[real_BT]  # noqa: E731
        torch.testing.assert_close(
            pick(got[name]), pick(value), rtol=1e-5, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}"
        )
