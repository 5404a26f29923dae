"""The stream as a whole, on real text: the figures it promises, and that nothing but the step shapes it."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertcli.batches.share import BatchSizes, Share
from bertcli.batches.stream import BatchStream
from bertcli.batches.stream_stats import measure_stream, show_pairs
from bertcli.corpus.build import prepare_store
from bertcli.corpus.token_store import OpenStore, open_store
from bertcli.system.errors import UserError
from tests.batches.stores import make_store
from tests.decided import data_config, recipe
from tests.small_runs import small_config


@pytest.fixture(scope="module")
def store(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    config = recipe(small_config(corpus, tmp_path_factory.mktemp("run")))
    return prepare_store(config, lambda line: None)


def stream_of(store: OpenStore, batch_size: int = 32, seed: int = 3, **changes: Any) -> BatchStream:
    return BatchStream(
        store.train,
        store.tokenizer,
        data_config(**({"max_length": 64} | changes)),
        seed,
        BatchSizes(batch_size),
    )


def measure(store: OpenStore, workers: int = 0, micro_batch_size: int = 32, batches: int = 20, **changes):
    stream = stream_of(store, **changes)
    steps = stream.steps(0, batches, Share(micro_batch_size), workers)
    return measure_stream(stream, steps, store.tokenizer)


def test_the_stream_does_not_depend_on_workers_or_micro_batches(store: OpenStore) -> None:
    hashes = {measure(store, workers=workers)["stream_hash"] for workers in (0, 1, 2)}
    hashes |= {measure(store, micro_batch_size=size)["stream_hash"] for size in (1, 7, 32)}
    assert len(hashes) == 1
    assert measure(store, seed=4)["stream_hash"] not in hashes


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_the_ranks_together_read_what_one_reads(store: OpenStore, num_ranks: int) -> None:
    stream = stream_of(store)
    shares = [stream.steps(0, 20, Share(8, rank, num_ranks), workers=0) for rank in range(num_ranks)]
    together = [[each for share in step for each in share] for step in zip(*shares, strict=True)]
    assert measure_stream(stream, together, store.tokenizer)["stream_hash"] == measure(store)["stream_hash"]

    alone = {each.number: each.batch for each in stream.micro_batches(7, Share(8))}
    for number, batch, is_dummy in together[7]:
        assert is_dummy == (number not in alone)
        assert is_dummy or torch.equal(batch.ids_BT, alone[number].ids_BT)


def test_any_step_can_be_asked_for_first(store: OpenStore) -> None:
    (walked,) = list(stream_of(store).steps(0, 6, Share(32), workers=0))[5]
    (later,) = next(stream_of(store).steps(5, 6, Share(32), workers=0))
    assert torch.equal(walked.batch.ids_BT, later.batch.ids_BT)
    assert torch.equal(walked.batch.targets_M, later.batch.targets_M)


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop", "mlm"])
def test_the_real_stream_keeps_its_figures(store: OpenStore, objective: str) -> None:
    measured = measure(store, batches=75, batch_size=256, objective=objective)
    if objective == "mlm+nsp":
        assert measured["label_shares"] == {"IsNext": 0.5, "NotNext": 0.5}
        assert measured["same_document_share"] == 0
    if objective == "mlm+sop":
        assert measured["label_shares"] == {"InOrder": 0.5, "Swapped": 0.5}
    assert measured["tokens"] > 1e6
    assert measured["special_masked"] == 0
    assert abs(measured["masked_share"] - 0.15) < 0.001
    assert np.abs(np.array(measured["masked_share_by_tenth"]) - 0.15).max() < 0.005
    # A random token is the right one now and then, and then counts as unchanged.
    assert np.abs(np.array(measured["mask_split"]) - [0.8, 0.1, 0.1]).max() < 0.01
    assert measured["fill"] > (0.88 if objective == "mlm+sop" else 0.93)  # whole sentences leave room


def test_a_row_reads_as_its_text(store: OpenStore) -> None:
    """Unmasked, a row is [CLS] A [SEP] B [SEP], A and B word for word as they stand in the store."""
    batch = stream_of(store)[0]
    tokenizer = store.tokenizer
    original_BT = batch.ids_BT.clone()
    original_BT[batch.rows_M, batch.columns_M] = batch.targets_M
    text = store.train.ids.astype(np.int64)
    for row, length in enumerate(batch.lengths_B.tolist()):
        ids = original_BT[row, :length].numpy()
        assert ids[0] == tokenizer.frame.prefix[0]
        first_sep, last_sep = np.flatnonzero(ids == tokenizer.frame.suffix[0])
        assert last_sep == length - 1
        for segment in (ids[1:first_sep], ids[first_sep + 1 : last_sep]):
            windows = np.lib.stride_tricks.sliding_window_view(text, len(segment))
            assert (windows == segment).all(axis=1).any()
        assert batch.segments_BT[row].tolist() == [0] * (first_sep + 1) + [1] * (length - first_sep - 1) + [
            0
        ] * (batch.ids_BT.shape[1] - length)
        assert (batch.ids_BT[row, length:] == tokenizer.pad_id).all()


def test_micro_batches_hold_the_same_rows_with_less_padding(store: OpenStore) -> None:
    stream = stream_of(store, short_pair_probability=0.5)
    batch, parts = stream[0], [each.batch for each in stream.micro_batches(0, Share(8))]
    assert [part.num_rows for part in parts] == [8, 8, 8, 8]
    assert sum(part.num_tokens for part in parts) == batch.num_tokens
    assert sum(part.num_masked for part in parts) == batch.num_masked
    assert sum(part.ids_BT.numel() for part in parts) < batch.ids_BT.numel()
    for part in parts:
        masked = part.ids_BT.flatten()[part.masked_M]
        assert torch.equal(masked, part.ids_BT[part.rows_M, part.columns_M])
        assert part.ids_BT.shape[1] == part.lengths_B.max()


def test_shown_pairs_mark_masks_and_labels(store: OpenStore) -> None:
    stream = stream_of(store)
    batch, labels = stream[0], stream.pairs.labels
    shown = list(show_pairs(batch, store.tokenizer, labels, at_most=3, color=False))
    assert batch.labels_B is not None
    assert [label for label, _ in shown] == [("IsNext", "NotNext")[i] for i in batch.labels_B[:3].tolist()]
    for _, text in shown:
        assert text.startswith("[CLS]")
        assert "[MASK]<" in text


def test_one_document_alone_is_an_error_that_says_what_to_do(store: OpenStore) -> None:
    lonely = make_store([[5, 5, 5]])
    with pytest.raises(UserError, match=r"at least two documents.*set.*data.objective: mlm"):
        BatchStream(lonely, store.tokenizer, data_config(), 0, BatchSizes(8))
    alone = BatchStream(lonely, store.tokenizer, data_config(objective="mlm"), 0, BatchSizes(8))
    assert alone[0].labels_B is None


def test_one_sentence_a_document_is_an_error_that_says_what_to_do(store: OpenStore) -> None:
    with pytest.raises(UserError, match=r"every document of the corpus is one sentence.*data.objective: mlm"):
        BatchStream(make_store([[5], [6], [7]]), store.tokenizer, data_config(), 0, BatchSizes(8))


def test_an_empty_side_is_an_error(store: OpenStore) -> None:
    empty = make_store([])
    with pytest.raises(UserError, match="no tokens on this side"):
        BatchStream(empty, store.tokenizer, data_config(), 0, BatchSizes(8))


def test_reuse_of_few_true_pairs_is_reported(store: OpenStore) -> None:
    posts = make_store([[20]] * 500 + [[20, 20]] * 2)
    lines = BatchStream(posts, store.tokenizer, data_config(), 0, BatchSizes(8)).reuse_lines(100)
    assert any("2 places give a true pair, each used about 2e+02 times" in line for line in lines)
    assert any(line.startswith("warning: few places give a true pair") for line in lines)
    many = make_store([[20]] * 50 + [[20, 20]] * 20)  # the pairs repeat more than the text, but not 10 times
    lines = BatchStream(many, store.tokenizer, data_config(), 0, BatchSizes(8)).reuse_lines(100)
    assert not any(line.startswith("warning") for line in lines)


def test_a_store_goes_to_another_process_by_its_files(store: OpenStore) -> None:
    """Not by its content, which may be larger than memory."""
    sent = pickle.dumps(store.train)
    assert len(sent) < 2000
    assert np.array_equal(pickle.loads(sent).ids, store.train.ids)


@pytest.mark.parametrize("name", ["ids", "sentences", "documents", "pairs"])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_store_that_is_cut_while_it_is_read(tmp_path, store: OpenStore, name: str, workers: int) -> None:
    opened = open_store(Path(shutil.copytree(store.folder, tmp_path / "store")))
    stream = stream_of(opened)
    os.truncate(opened.folder / "train" / f"{name}.bin", 16)
    with pytest.raises(UserError, match=rf"train/{name}\.bin: was cut while it was in use"):
        list(stream.steps(0, 1, Share(8), workers))
