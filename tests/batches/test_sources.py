"""Several sources: each gets its exact share of the rows, and its rows hold its own text alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.batches.share import BatchSizes, Share, SourceRows
from bertcli.batches.slots import IS_NEXT, draw_slots
from bertcli.batches.stream import BatchStream, training_stream
from bertcli.batches.stream_stats import measure_stream
from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.build import prepare_store
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.batches.stores import document_of, make_store
from tests.decided import data_config, recipe
from tests.small_runs import small_config

WEIGHTS = {
    2: [2.0, 1.0],
    3: [0.5, 0.3, 0.2],
    7: [0.4, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02],
}


def largest_remainder(shares: list[float], total: int) -> list[int]:
    """By hand: round down, then one more for those that lost most."""
    exact = [share * total for share in shares]
    rows = [int(each + 1e-9) for each in exact]
    for number in sorted(range(len(rows)), key=lambda n: rows[n] - exact[n])[: total - sum(rows)]:
        rows[number] += 1
    return rows


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=map(str, WEIGHTS))
def test_the_rows_of_1_000_steps_are_the_shares(weights: list[float]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    rows = SourceRows(BatchSizes(64), lambda step: shares)
    assert rows.before(1000).tolist() == largest_remainder(shares, 64_000)


SHARES = st.lists(st.integers(0, 1000), min_size=2, max_size=7).filter(any)


@given(SHARES, st.data(), st.integers(1, 70), st.integers(1, 300))
def test_moving_shares_are_followed_row_by_row(start, data, batch_size: int, ramp_steps: int) -> None:
    last = data.draw(st.lists(st.integers(0, 1000), min_size=len(start), max_size=len(start)).filter(any))
    corpus = CorpusConfig.model_validate(
        {
            "sources": [
                {"files": "x", "weight": list(map(float, ends))} for ends in zip(start, last, strict=True)
            ]
        }
    )

    def shares(step: int) -> list[float]:
        return corpus.shares([1.0] * len(start), step, ramp_steps)

    rows = SourceRows(BatchSizes(batch_size), shares)
    counted = np.array([rows.before(step) for step in range(400)])
    exact = np.cumsum([[batch_size * share for share in shares(step)] for step in range(399)], axis=0)
    assert (counted.sum(axis=1) == batch_size * np.arange(400)).all()
    assert (np.diff(counted, axis=0) >= 0).all()
    assert np.abs(counted[1:] - exact).max() < 1.5


@pytest.mark.parametrize(("power", "expected"), [(1.0, [0.8, 0.2]), (0.5, [2 / 3, 1 / 3]), (0.0, [0.5, 0.5])])
def test_the_temperature_makes_shares_of_sizes(power: float, expected: list[float]) -> None:
    corpus = CorpusConfig.model_validate({"sources": [{"files": "x"}] * 2, "temperature": [1.0, power]})
    assert corpus.shares([80, 20], 0, 11) == pytest.approx([0.8, 0.2])
    assert corpus.shares([80, 20], 10, 11) == pytest.approx(expected)


@given(SHARES, st.integers(1, 40))
def test_each_source_has_its_own_places_and_half_of_each_label(weights: list[int], batch_size: int) -> None:
    shares = [weight / sum(weights) for weight in weights]
    rows = SourceRows(BatchSizes(batch_size), lambda step: shares)
    steps = [
        draw_slots(7, step, rows.before(step), rows=rows.before(step + 1) - rows.before(step))
        for step in range(20)
    ]
    numbers, sources, places, labels, turns = (np.concatenate(each) for each in zip(*steps, strict=True))
    assert numbers.tolist() == list(range(20 * batch_size))
    for source, total in enumerate(rows.before(20).tolist()):
        own = sources == source
        assert sorted(places[own]) == list(range(total))
        is_next = labels[own] == IS_NEXT
        assert sorted(turns[own][is_next]) == list(range(total // 2))
        assert sorted(turns[own][~is_next]) == list(range(total - total // 2))


DOCUMENTS = [[5, 7, 6, 9]] * 30 + [[8, 3, 4, 12, 6]] * 20 + [[10, 11]] * 50
BOUNDS = (0, 30, 50, 100)


@pytest.fixture(scope="module")
def tokenizer(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    config = recipe(small_config(corpus, tmp_path_factory.mktemp("run")))
    return prepare_store(config, lambda line: None).tokenizer


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp", "mlm+sop"])
def test_rows_hold_the_text_of_one_source(tokenizer: Tokenizer, objective: str) -> None:
    store = make_store(DOCUMENTS, 400, bounds=BOUNDS)
    shares = [0.2, 0.5, 0.3]
    data = data_config(objective=objective, max_length=32)
    stream = BatchStream(store, tokenizer, data, 0, BatchSizes(20), lambda step: shares)
    ends: list[np.ndarray] = []
    for step in range(40):
        slots = stream.slots(step)
        assert np.bincount(slots.sources, minlength=3).tolist() == [4, 10, 6]
        spans = stream.spans(slots, step)
        for start, end in ((spans.a_start, spans.a_end), (spans.b_start, spans.b_end)):
            for token in (start[end > start], end[end > start] - 1):
                document = document_of(store, token)
                source = np.searchsorted(BOUNDS, document, side="right") - 1
                assert (source == slots.sources[end > start]).all()
        ends.append(np.where(slots.labels == 1, spans.b_end, spans.a_end)[slots.sources == 2])
    if objective == "mlm+sop":  # the last source has 50 places of pairs, and its first 50 rows have one each
        assert len(set(np.concatenate(ends)[:50].tolist())) == 50


def test_a_source_without_pairs_is_named(tokenizer: Tokenizer) -> None:
    store = make_store([[5, 7]] * 5 + [[8]] * 5, 400, bounds=(0, 5, 10))
    with pytest.raises(UserError, match=r"sentence pairs of source 2 \(objective: mlm\+nsp\) need documents"):
        BatchStream(store, tokenizer, data_config(), 0, BatchSizes(8), lambda step: [0.5, 0.5])


def test_ranks_and_micro_batches_read_the_same_rows(corpus: Path, tmp_path: Path) -> None:
    chapters = corpus.read_text(encoding="utf-8").split("\n\n")
    for number, name in enumerate("ab"):
        (tmp_path / f"{name}.txt").write_text("\n\n".join(chapters[number::2]), encoding="utf-8")
    sources = [
        {"files": str(tmp_path / "a.txt"), "weight": [1.0, 0.0]},
        {"files": str(tmp_path / "b.txt"), "weight": [1.0, 3.0], "name": "the other"},
    ]
    given = small_config(corpus, tmp_path / "run", training={"steps": 20, "ramp_steps": 20})
    config = recipe(given | {"corpus": {"sources": sources, "heldout_fraction": 0.2}})
    store, names = prepare_store(config, lambda line: None), config.corpus.source_names
    stream = training_stream(config, store)
    measured = [
        measure_stream(stream, stream.steps(0, 20, share, workers), store.tokenizer, names)
        for share, workers in ((Share(8), 0), (Share(3), 0), (Share(4), 1))
    ]
    ranks = [stream.steps(0, 20, Share(2, rank, 3), workers=0) for rank in range(3)]
    together = [[each for share in step for each in share] for step in zip(*ranks, strict=True)]
    measured.append(measure_stream(stream, together, store.tokenizer, names))
    assert len({each["stream_hash"] for each in measured}) == 1
    exact = np.sum([np.array(config.corpus.shares([1, 1], step, 20)) * 8 for step in range(20)], axis=0)
    rows = {"a": largest_remainder((exact / 160).tolist(), 160)[0] / 160}
    assert measured[0]["source_shares"] == pytest.approx(rows | {"the other": 1 - rows["a"]})
    assert OBJECTIVES[config.data.objective].pairs.is_pair
    assert measured[0]["same_document_share"] == 0.0


def test_a_source_without_text_is_named(tokenizer: Tokenizer) -> None:
    store = make_store([[5, 7]] * 5, 400, bounds=(0, 5, 5))
    with pytest.raises(UserError, match=r"holds no tokens of source 2 on this side; add text"):
        BatchStream(store, tokenizer, data_config(), 0, BatchSizes(8))
