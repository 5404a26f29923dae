from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from bertcli.batches.batch import Batch
from bertcli.batches.share import Share
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.corpus.token_store import OpenStore
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.wordpiece import Normalization, build
from bertcli.training.heldout import HeldoutBatches
from bertcli.training.pretraining import pretrain
from tests.batches.stores import make_store
from tests.decided import data_config, recipe
from tests.folders.folders import WORDS
from tests.small_runs import small_config


@pytest.fixture(scope="module")
def store(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    config = recipe(small_config(corpus, tmp_path_factory.mktemp("run")))
    return prepare_store(config, lambda line: None)


def test_the_masks_are_the_same_for_every_run(store: OpenStore) -> None:
    batches = []
    for rate in (0.15, 0.4):
        config = data_config(mask_rate=rate, max_length=32)
        heldout = HeldoutBatches(store.heldout, store.tokenizer, config, 8)
        batches.append([micro_batch.batch for (micro_batch,) in heldout.steps(Share(8))])
    for a, b in zip(*batches, strict=True):
        assert torch.equal(a.ids_BT, b.ids_BT)
        assert torch.equal(a.targets_M, b.targets_M)


def test_replaced_tokens_are_masked_as_at_the_end_of_their_training(store: OpenStore) -> None:
    config = data_config(objective="rtd", mask_rate=(0.2, 0.4), mask_split=(1.0, 0.0, 0.0), max_length=32)
    heldout = HeldoutBatches(store.heldout, store.tokenizer, config, 8)
    batches = [micro_batch.batch for (micro_batch,) in heldout.steps(Share(8))]
    shown = torch.cat([batch.ids_BT.flatten()[batch.masked_M] for batch in batches])
    assert (shown == store.tokenizer.mask_id).all()
    assert 0.35 < len(shown) / sum(batch.num_tokens for batch in batches) < 0.4


def test_at_most_so_many_batches(store: OpenStore) -> None:
    mlm = data_config(objective="mlm", max_length=32)
    few, many = (HeldoutBatches(store.heldout, store.tokenizer, mlm, 8, at_most=n) for n in (2, 10**6))
    assert len(list(few.steps(Share(8)))) == few.num_batches == 2
    assert len(list(many.steps(Share(8)))) == many.num_batches
    assert many.count_tokens() == (store.heldout.num_tokens,) * 2


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp", "mlm+sop", "rtd"])
@pytest.mark.parametrize(
    "documents",
    [
        [[3], [4]],
        [[30], [1], [31, 29], [60, 1]],
        [[7] * 40, [2, 2]],
        [[5], [200], [5]],
        [[1]] * 50,
        [[29, 1], [30, 30, 1]] * 9,
        [[400, 3]],
        [[n % 9 + 1] * (n % 7 + 1) for n in range(60)],
    ],
)
def test_words_are_measured_on_each_token_once(
    wide: Tokenizer, documents: list[list[int]], objective: str
) -> None:
    text = make_store(documents)
    config = data_config(objective=objective, max_length=32)
    heldout = HeldoutBatches(text, wide, config, 4)
    read, pairs, words = [], 0, True
    for (micro_batch,) in heldout.steps(Share(4)):
        batch = micro_batch.batch
        words = words and batch.labels_B is None  # those of words come first
        assert words == (batch.labels_B is None)
        assert batch.num_masked >= batch.num_rows if words else batch.num_masked == 0
        pairs += 0 if words else batch.num_rows
        ids_BT = batch.ids_BT.clone()
        ids_BT[batch.rows_M, batch.columns_M] = batch.targets_M
        rows = zip(ids_BT.tolist(), batch.lengths_B.tolist(), strict=True)
        read += [tuple(ids[1 : length - 1]) for ids, length in rows] if words else []
    ids, starts = text.ids.tolist(), text.sentences[text.documents].tolist()
    laid = [
        tuple(ids[at : min(at + 30, end)]) for start, end in pairwise(starts) for at in range(start, end, 30)
    ]
    assert sorted(read) == sorted(laid)
    assert heldout.count_tokens() == (text.num_tokens, text.num_tokens)
    assert pairs == heldout.num_pairs
    assert (pairs > 0) == heldout.pairs.is_pair


def test_masks_do_not_depend_on_the_size_of_batches(store: OpenStore) -> None:
    masked = []
    for size in (3, 8):
        heldout = HeldoutBatches(store.heldout, store.tokenizer, data_config(objective="mlm"), size)
        masked.append(sorted(row for (each,) in heldout.steps(Share(size)) for row in shown(each.batch)))
    assert masked[0] == masked[1]


def test_a_text_beyond_the_budget_is_sampled_for_words_and_pairs_together(wide: Tokenizer) -> None:
    text, config = make_store([[9] * 50] * 20), data_config(max_length=32)
    joint = HeldoutBatches(text, wide, config, 8, at_most=1)
    (batch,) = [each.batch for (each,) in joint.steps(Share(8))]
    assert (batch.labels_B is None, batch.num_masked > 0) == (False, True)
    sample = HeldoutBatches(text, wide, config, 8, at_most=5, once=True)
    read, distinct = sample.count_tokens()
    assert 0 < read == distinct < text.num_tokens
    assert len(list(sample.steps(Share(8)))) == 10  # five of words, five of pairs


@pytest.fixture(scope="module")
def wide() -> Tokenizer:
    """With room for the ids of `make_store`."""
    return Tokenizer(
        build([*WORDS[:5], *(f"w{n}" for n in range(10_000))], Normalization()), "the vocabulary"
    )


def shown(batch: Batch) -> list[tuple[int, ...]]:
    rows = zip(batch.ids_BT.tolist(), batch.lengths_B.tolist(), strict=True)
    return [tuple(ids[:length]) for ids, length in rows]


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
    assert not (tmp_path / "store").exists()  # it is said before the text is tokenized
