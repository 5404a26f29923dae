"""The nearest texts of a stream, beside a sort of all cosines."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bertcli.inference.vectors import nearest
from bertcli.tasks.examples import TextExample


def test_of_equally_near_ones_the_earlier_come_first() -> None:
    """Of 3,000 texts in several buffers, hundreds have the same vector, whose cosine is exact: +-1 / 2."""
    signs_ND = torch.randint(2, (3000, 4), generator=torch.Generator().manual_seed(0)).float() * 2 - 1
    examples = [TextExample(f"line {n}", {}, ("text",), label=None) for n in range(3000)]

    def numbers(found: Sequence[TextExample]) -> list[int]:
        return [int(example.where.removeprefix("line ")) for example in found]

    found = nearest(
        signs_ND[:3], examples, lambda some: signs_ND[numbers(some)].clone(), batch_size=4, top=900
    )
    for query_D, near in zip(signs_ND, found, strict=False):
        cosines_N = signs_ND @ query_D / 4
        expected = sorted(range(3000), key=lambda n: (-float(cosines_N[n]), n))[:900]
        assert numbers([each.example for each in near]) == expected
        assert [each.similarity for each in near] == cosines_N[expected].tolist()
