from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.data.share import Share
from bertcli.errors import UserError
from bertcli.evaluation.heldout import HeldoutBatches
from bertcli.runs.pretraining import pretrain
from bertcli.store.build import prepare_store
from bertcli.store.token_store import OpenStore
from tests.data.stores import make_store
from tests.decided import data_config
from tests.small_runs import small_config


@pytest.fixture(scope="module")
def store(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    config = check_config(PretrainConfig, small_config(corpus, tmp_path_factory.mktemp("run")), "test")
    return prepare_store(config, lambda line: None)


def test_the_masks_are_the_same_for_every_run_and_hold_the_text_once(store: OpenStore) -> None:
    batches = []
    for rate in (0.15, 0.4):
        config = data_config(mask_rate=rate, max_length=32)
        heldout = HeldoutBatches(store.heldout, store.tokenizer, config, 8)
        batches.append([micro_batch.batch for (micro_batch,) in heldout.steps(Share(8))])
    for a, b in zip(*batches, strict=True):
        assert torch.equal(a.ids_BT, b.ids_BT)
        assert torch.equal(a.targets_M, b.targets_M)
    tokens = sum(batch.num_tokens for batch in batches[0])
    assert store.heldout.num_tokens * 0.9 < tokens < store.heldout.num_tokens * 1.3


def test_replaced_tokens_are_masked_as_at_the_end_of_their_training(store: OpenStore) -> None:
    config = data_config(objective="rtd", mask_rate=(0.2, 0.4), mask_split=(1.0, 0.0, 0.0), max_length=32)
    heldout = HeldoutBatches(store.heldout, store.tokenizer, config, 8)
    batches = [micro_batch.batch for (micro_batch,) in heldout.steps(Share(8))]
    shown = torch.cat([batch.ids_BT.flatten()[batch.masked_M] for batch in batches])
    assert (shown == store.tokenizer.mask_id).all()
    assert 0.35 < len(shown) / sum(batch.num_tokens for batch in batches) < 0.4


def test_at_most_so_many_batches(store: OpenStore) -> None:
    heldout = HeldoutBatches(store.heldout, store.tokenizer, data_config(max_length=32), 8)
    assert len(list(heldout.steps(Share(8), 2))) == 2
    assert len(list(heldout.steps(Share(8), 10**6))) == heldout.num_batches


def test_text_without_pairs_measures_mlm_alone(store: OpenStore) -> None:
    posts = HeldoutBatches(make_store([[20], [20], [20]], 400), store.tokenizer, data_config(), 2)
    assert not posts.pairs.is_pair
    ((_, batch, _),) = next(posts.steps(Share(2)))
    assert batch.labels_B is None


def test_rows_longer_than_the_given_model_are_an_error(corpus: Path, tmp_path: Path) -> None:
    first = small_config(corpus, tmp_path / "first", training={"steps": 1})
    pretrain(check_config(PretrainConfig, first, "test"), resume=False, overwrite=False)
    value = small_config(
        corpus,
        tmp_path / "second",
        corpus={"store": str(tmp_path / "store")},
        model={"init_from": str(tmp_path / "first")},
        data={"max_length": 64},
    )
    config = check_config(PretrainConfig, value, "test")
    with pytest.raises(
        UserError, match=r"data.max_length \(64\) is longer than the positions of the model in"
    ):
        pretrain(config, resume=False, overwrite=False)
