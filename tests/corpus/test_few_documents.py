"""Fewer than 40 documents: runs of sentences are held out, and no pair crosses from one side to the other."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.advice.check.pretraining import check_pretraining
from bertcli.batches.pairs import draw_pairs, draw_sizes
from bertcli.batches.share import BatchSizes, Share
from bertcli.batches.slots import NOT_NEXT
from bertcli.batches.stream import BatchStream
from bertcli.cli.stores import summarize
from bertcli.config.run import PretrainRecipe, with_values
from bertcli.corpus import build, chunks, finish, parts
from bertcli.corpus.build import prepare_store
from bertcli.corpus.parts import Piece, cut_documents
from bertcli.corpus.token_store import TokenStore, open_store
from bertcli.system.errors import UserError
from bertcli.training.heldout import HeldoutBatches
from tests.batches.stores import one_source_slots
from tests.corpus.builds import contents, make_config, silent
from tests.decided import data_config, tokenizer_config

DOCUMENTS = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 300)), min_size=1, max_size=39)


@given(DOCUMENTS, st.sampled_from([0.01, 0.05, 0.2, 0.5]))
def test_pieces_are_the_documents_and_about_the_share_of_them_is_held_out(
    documents: list[tuple[int, int]], fraction: float
) -> None:
    pieces = cut_documents(documents, fraction)
    for number, (_, sentences) in enumerate(documents):
        own = [piece for piece in pieces if piece.document == number]
        assert [own[0].start, *(piece.end for piece in own)] == [*(piece.start for piece in own), sentences]
        assert all(a.side != b.side or a.side == "heldout" for a, b in itertools.pairwise(own))
    held = [piece for piece in pieces if piece.side == "heldout"]
    total = sum(sentences for _, sentences in documents)
    if total > 2:
        assert len(held) >= 2
        size = max(piece.end - piece.start for piece in held)
        longer = sum(sentences > size for _, sentences in documents)
        assert len({piece.document for piece in held}) >= min(2, longer)
        assert sum(piece.end - piece.start for piece in held) <= max(fraction * total + size, 2 * size)
        assert sum(piece.end - piece.start for piece in held) < total


@pytest.mark.parametrize("lengths", [[10_000, 3], [10_000, 64], [10_000, 3, 3, 3], [10_000, 128], [100, 4]])
def test_of_one_long_document_and_short_ones_the_share_is_held_out(lengths: list[int]) -> None:
    for seed in range(20):
        pieces = cut_documents([(1000 * seed + n, length) for n, length in enumerate(lengths)], 0.05)
        held = sum(piece.end - piece.start for piece in pieces if piece.side == "heldout")
        assert held == pytest.approx(0.05 * sum(lengths), rel=0.2)
        assert {piece.document for piece in pieces if piece.side == "train"} == set(range(len(lengths)))


SKEWED = st.lists(st.one_of(st.integers(1, 8), st.integers(1, 20_000)), min_size=2, max_size=8)


@given(SKEWED, st.integers(0, 2**32), st.sampled_from([0.001, 0.05, 0.2, 0.5]))
def test_skewed_lengths_leave_two_documents_to_train_on_and_hold_out_the_share(
    lengths: list[int], seed: int, fraction: float
) -> None:
    pieces = cut_documents([(seed + number, length) for number, length in enumerate(lengths)], fraction)
    held = [piece for piece in pieces if piece.side == "heldout"]
    run = max((piece.end - piece.start for piece in held), default=0)
    assert sum(piece.end - piece.start for piece in held) >= fraction * sum(lengths) - run
    assert sum(piece.end - piece.start for piece in pieces) == sum(lengths)  # no sentence twice, none lost
    for number, length in enumerate(lengths):
        own = [piece for piece in pieces if piece.document == number]
        assert [own[0].start, *(piece.end for piece in own)] == [*(piece.start for piece in own), length]
    if sum(lengths) >= 4:
        assert len({piece.document for piece in pieces if piece.side == "train"}) >= 2


@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_the_order_of_the_documents_changes_no_piece(documents: list[tuple[int, int]], drawn: object) -> None:
    documents = list(dict(documents).items())
    order = list(range(len(documents)))
    drawn.shuffle(order)  # pyright: ignore[reportAttributeAccessIssue]

    def found(pieces: list[Piece], numbers: list[int]) -> set[tuple[int, int, int, str]]:
        return {(numbers[piece.document], *piece[1:]) for piece in pieces}

    other = cut_documents([documents[number] for number in order], 0.1)
    assert found(cut_documents(documents, 0.1), list(range(len(order)))) == found(other, order)


def write_documents(folder: Path, documents: int, sentences: int = 60) -> PretrainRecipe:
    """Sentence n of document d says so."""
    (folder / "corpus").mkdir()
    texts = ["\n".join(f"Text {d} says {n}." for n in range(sentences)) + "\n" for d in range(documents)]
    (folder / "corpus" / "a.txt").write_text("\n\n".join(texts[: documents // 2 + 1]))
    (folder / "corpus" / "b.txt").write_text("\n\n".join(texts[documents // 2 + 1 :]) or "\n")
    return make_config(folder, tokenizer_config(vocab_size=120), heldout_fraction=0.05)


def sentences_of(side: TokenStore, tokenizer: object) -> list[list[tuple[int, int]]]:
    """(document, sentence) of the text, for each sentence of each document of a side."""
    bounds = side.sentences.astype(int)
    decode = tokenizer.decode  # pyright: ignore[reportAttributeAccessIssue]
    texts = [decode(side.ids[a:b]).rstrip(".").split() for a, b in itertools.pairwise(bounds)]
    numbers = [(int(words[1]), int(words[3])) for words in texts]
    return [numbers[int(a) : int(b)] for a, b in itertools.pairwise(side.documents)]


@pytest.mark.parametrize("documents", [1, 3, 39])
def test_no_pair_crosses_to_the_other_side_or_a_gap(tmp_path: Path, documents: int) -> None:
    said: list[str] = []
    store = prepare_store(write_documents(tmp_path, documents), said.append, processes=0)
    sides = [sentences_of(side, store.tokenizer) for side in (store.train, store.heldout)]
    for piece in itertools.chain(*sides):
        assert piece == [(piece[0][0], piece[0][1] + number) for number in range(len(piece))]
    every = sorted(itertools.chain.from_iterable(itertools.chain(*sides)))
    assert every == [(d, n) for d in range(documents) for n in range(60)]
    held = sum(map(len, sides[1]))
    assert len(sides[1]) >= 2
    assert 0.03 * len(every) <= held <= 0.1 * len(every)
    only = "only 1 document" if documents == 1 else f"only {documents} documents"
    assert f"held out: {len(sides[1])} runs of sentences, because the corpus has {only}" in said
    assert store.train.num_texts == documents
    assert not list(store.folder.glob("cut*"))


@pytest.mark.parametrize("short", [[3], [3, 3, 3]])
def test_one_long_document_and_short_ones_train_pairs_and_evaluate_without(
    tmp_path: Path, short: list[int]
) -> None:
    texts = [
        "\n".join(f"Text {d} says {n}." for n in range(length)) for d, length in enumerate([1500, *short])
    ]
    (tmp_path / "a.txt").write_text("\n\n".join(texts))
    config = make_config(tmp_path, tokenizer_config(vocab_size=120), files=[str(tmp_path / "a.txt")])
    corpus = config.corpus.model_copy(update={"heldout_fraction": 0.05})
    store = prepare_store(config.model_copy(update={"corpus": corpus}), silent, processes=0)
    assert store.train.num_texts == len(texts)
    assert store.heldout.num_texts == 1
    assert store.heldout.num_sentences == pytest.approx(75, abs=10)
    assert BatchStream(store.train, store.tokenizer, data_config(), 0, BatchSizes(8))[0].labels_B is not None
    heldout = HeldoutBatches(store.heldout, store.tokenizer, data_config(), 8)
    assert not heldout.pairs.is_pair
    assert len(list(heldout.steps(Share(8)))) == heldout.num_batches > 0


def test_forty_documents_are_held_out_whole(tmp_path: Path) -> None:
    config = write_documents(tmp_path, 40, sentences=4)
    corpus = config.corpus.model_copy(update={"heldout_fraction": 0.3})
    store = prepare_store(config.model_copy(update={"corpus": corpus}), silent, processes=0)
    assert store.train.num_texts == store.train.num_documents
    assert store.train.num_documents + store.heldout.num_documents == 40


def test_the_b_of_a_notnext_pair_is_no_other_piece_of_its_document(tmp_path: Path) -> None:
    store = prepare_store(write_documents(tmp_path, 3), silent, processes=0)
    for side in (store.train, store.heldout):
        assert side.num_documents > side.num_texts > 1 or side is store.heldout
        text_of = np.repeat(np.arange(side.num_texts), np.diff(side.texts[0].astype(int)))  # pyright: ignore
        slots = one_source_slots(0, 0, 0, batch_size=400)
        spans = draw_pairs(side, slots, 0, draw_sizes(slots.numbers, 0, 24, 0.1, 0.15))
        a, b = (
            text_of[np.searchsorted(side.sentences, starts.astype(np.uint64), side="right") - 1]
            for starts in (spans.a_start, spans.b_start)
        )
        assert np.array_equal(a != b, slots.labels == NOT_NEXT)


def test_pairs_of_one_document_are_refused_and_mlm_is_not(tmp_path: Path) -> None:
    store = prepare_store(write_documents(tmp_path, 1), silent, processes=0)
    with pytest.raises(UserError, match=r"sentence pairs .* need at least two documents"):
        BatchStream(store.train, store.tokenizer, data_config(), 0, BatchSizes(8))
    for side in (store.train, store.heldout):
        stream = BatchStream(side, store.tokenizer, data_config(objective="mlm"), 0, BatchSizes(8))
        assert stream[0].num_rows == 8


def test_the_store_is_the_same_however_it_is_built_and_where_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_documents(tmp_path, 5)
    whole = prepare_store(config, silent, processes=0)
    expected = contents(whole.folder)
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 100)
    for module, place in (
        (parts, "cut_sides"),
        (parts, "put_in_place"),
        (finish, "count_store"),
        (build, "publish"),
    ):
        shutil.rmtree(whole.folder)
        with monkeypatch.context() as patch:
            done = getattr(module, place)
            patch.setattr(build, "JOURNAL_SECONDS", 0)
            if place == "count_store":  # before it; the others after they are done
                patch.setattr(module, place, lambda *a, **k: 1 / 0)
            else:
                patch.setattr(module, place, lambda *a, done=done, **k: (done(*a, **k), 1 / 0))
            with pytest.raises(ZeroDivisionError):
                prepare_store(config, silent, processes=0)
        if place == "publish":
            continue
        assert contents(prepare_store(config, silent, processes=0).folder) == expected
    assert open_store(whole.folder).manifest == whole.manifest


@pytest.mark.parametrize("documents", [1, 7])
def test_check_data_counts_what_the_store_holds(tmp_path: Path, documents: int) -> None:
    config = write_documents(tmp_path, documents)
    config = with_values(config, {"training": {"batch_size": 8}, "data": data_config()})
    figures, findings = check_pretraining(config, tokenize_all=True, report=silent, processes=0)
    summary = summarize(prepare_store(config, silent, processes=0), config.corpus.source_names, seconds=1.0)
    same = ("documents", "sentences", "tokens", "one_sentence_documents", "unigram_entropy", "words", "bytes")
    for name in (*same, "heldout_documents", "heldout_sentences", "heldout_tokens", "unk_rate"):
        assert figures[name] == pytest.approx(summary[name]), name
    assert not any("heldout" in finding.problem for finding in findings)
    assert any("need two documents" in finding.problem for finding in findings) == (documents == 1)
    again = check_pretraining(config, tokenize_all=True, report=silent, processes=0).figures  # of the store
    assert {name: again[name] for name in same} == pytest.approx({name: summary[name] for name in same})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("One sentence.\n", "0.05 of 1 document holds out 1 runs of sentences; evaluation needs two"),
        ("One sentence. And two.\n", "0.05 holds out all of 1 document; lower it .* give more text"),
    ],
)
def test_text_too_short_to_hold_any_out_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    config = make_config(tmp_path, tokenizer_config(vocab_size=120), files=[str(tmp_path / "a.txt")])
    corpus = config.corpus.model_copy(update={"heldout_fraction": 0.05})
    with pytest.raises(UserError, match=message):
        prepare_store(config.model_copy(update={"corpus": corpus}), silent, processes=0)
