"""Tables of another vocabulary: rows that are copied, mixed and drawn; positions that begin after padding."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.folders.vocabulary import check_padding, transplanted
from bertcli.system.errors import UserError
from bertcli.tokenizer.transplant import Origins
from tests.families.published import family_folder
from tests.folders.folders import tiny_tokenizer

OLD_IDS = list(range(2000))
NEW_IDS = list(range(2, 502))
ORIGINS = Origins([{7: 1.0}, {3: 0.25, 9: 0.75}, *({} for _ in NEW_IDS)], [(NEW_IDS, OLD_IDS)], counts={})


def test_rows_are_copied_mixed_and_drawn() -> None:
    torch.manual_seed(1)
    table_VD = torch.randn(2500, 3) * torch.tensor([1.0, 0.1, 3.0]) + torch.tensor([0.0, 5.0, -2.0])
    new_VD = transplanted(ORIGINS, 5)(table_VD)
    assert torch.equal(new_VD[0], table_VD[7])
    torch.testing.assert_close(new_VD[1], 0.25 * table_VD[3] + 0.75 * table_VD[9])
    drawn, like = new_VD[2:], table_VD[OLD_IDS]
    assert ((drawn.mean(0) - like.mean(0)).abs() < 0.15 * like.std(0)).all()
    torch.testing.assert_close(drawn.std(0), like.std(0), rtol=0.1, atol=0)
    assert len(drawn.unique(dim=0)) == 500
    assert torch.equal(transplanted(ORIGINS, 5)(table_VD), new_VD)
    assert not torch.equal(transplanted(ORIGINS, 6)(table_VD), new_VD)


def test_a_drawn_bias_is_the_mean() -> None:
    bias_V = torch.arange(2500.0)
    new_V = transplanted(ORIGINS, 5)(bias_V)
    assert new_V.shape == (502,)
    assert new_V[:2].tolist() == [7.0, 7.5]
    assert (new_V[2:] == 999.5).all()


def test_positions_that_begin_after_another_padding_are_refused(tmp_path: Path) -> None:
    roberta = family_folder("roberta", tmp_path / "roberta")
    with pytest.raises(UserError, match=r"begin after the id of its padding, 1, .* has the id 0 for it"):
        check_padding(roberta, tiny_tokenizer())
    check_padding(family_folder("bert", tmp_path / "bert"), tiny_tokenizer())
