"""The model of replaced words: samples, shared embeddings, and logits that do not depend on the batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertcli.families.family import Sharing
from bertcli.folders.config_file import new_architecture
from bertcli.model import pretraining as replaced_tokens
from bertcli.model.pretraining import DisentangledEmbedding, ReplacedTokenModel, sample
from bertcli.objectives.registry import RTD
from tests.decided import model_config

CONFIG = model_config(family="electra", layers=2, hidden=32, heads=4, feed_forward=64, max_positions=40)
V3 = model_config(family="deberta-v3", layers=2, hidden=32, heads=4, feed_forward=64, max_positions=40)


def model_of(config=CONFIG, sharing: Sharing = "tied") -> ReplacedTokenModel:
    torch.manual_seed(0)
    sizes = new_architecture(config, 50, objective=RTD)
    assert sizes.generator is not None
    generator = replace(sizes.generator, init_std=0.3)
    return ReplacedTokenModel(replace(sizes, init_std=0.3, generator=generator), sharing).eval()


def rows(lengths: tuple[int, ...]):
    """ids, segments, mask, masked places and draws."""
    generator = torch.Generator().manual_seed(1)
    longest = max(lengths)
    mask_BT = torch.arange(longest) < torch.tensor(lengths)[:, None]
    ids_BT = torch.randint(5, 50, mask_BT.shape, generator=generator)
    masked_M = torch.tensor(
        [row * longest + 1 + 2 * i for row, n in enumerate(lengths) for i in range(n // 3)]
    )
    draws_M = torch.rand(len(masked_M), generator=generator, dtype=torch.float64)
    return ids_BT, torch.zeros_like(ids_BT), mask_BT, masked_M, draws_M


def test_words_are_drawn_by_their_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.tensor([0.5, -1.0, 2.0, 0.0]).expand(40_000, 4)
    draws = (torch.arange(40_000, dtype=torch.float64) + 0.5) / 40_000
    words = sample(logits, draws)
    shares = words.bincount(minlength=4) / 40_000
    torch.testing.assert_close(shares, logits[0].softmax(-1), rtol=0, atol=1e-4)
    monkeypatch.setattr(replaced_tokens, "_CHUNK", 64)
    assert torch.equal(sample(logits, draws), words)
    ends = torch.tensor([0.0, 1.0 - 2.0**-53], dtype=torch.float64)
    assert sample(logits[:2], ends).tolist() == [0, 3]


def test_the_generator_is_narrower_and_has_the_same_embeddings() -> None:
    model = model_of()
    assert model.generator.architecture.hidden == 8
    assert model.generator.architecture.embedding == 32
    own, theirs = model.body.embeddings, model.generator.body.embeddings
    assert own.word is theirs.word
    assert own.norm is theirs.norm
    assert len({id(parameter) for parameter in model.parameters()}) == len(list(model.parameters()))


def test_gradients_of_the_discriminator_stop_at_the_generators_table() -> None:
    model = model_of(V3, "gradient-disentangled")
    word = model.body.embeddings.word
    assert isinstance(word, DisentangledEmbedding)
    assert torch.equal(word.weight, model.generator.body.embeddings.word.weight)
    model(*rows((12, 7))).rtd_logits_K.sum().backward()
    assert all(parameter.grad is None for parameter in model.generator.parameters())
    assert word.difference.grad is not None
    assert word.difference.grad.abs().sum() > 0


@pytest.mark.parametrize("config", [CONFIG, V3], ids=["electra", "deberta-v3"])
@torch.no_grad()
def test_padding_and_other_rows_change_nothing(config) -> None:
    model = model_of(config, "tied" if config is CONFIG else "gradient-disentangled")
    ids_BT, segments_BT, mask_BT, masked_M, draws_M = rows((15, 9, 4))
    together = model(ids_BT, segments_BT, mask_BT, masked_M, draws_M)
    begins, done = 0, 0
    for row, length in enumerate((15, 9, 4)):
        own = masked_M // 15 == row
        alone = model(
            *(ids_BT[row : row + 1, :length], segments_BT[row : row + 1, :length], None),
            *(masked_M[own] % 15, draws_M[own]),
        )
        count = int(own.sum())
        assert torch.equal(alone.sampled_N, together.sampled_N[done : done + count])
        torch.testing.assert_close(
            alone.rtd_logits_K, together.rtd_logits_K[begins : begins + length], rtol=1e-5, atol=1e-5
        )
        begins, done = begins + length, done + count
