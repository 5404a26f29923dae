"""Opening a store: what it holds, and every way in which its folder can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bertcli.corpus.build import prepare_store
from bertcli.corpus.documents import split_sentences
from bertcli.corpus.finish import unigram_entropy
from bertcli.corpus.token_store import OpenStore, ids_dtype, open_store
from bertcli.system.errors import UserError
from tests.decided import recipe

TEXT = "The cat sat. It purred!\nThe dog left.\n\nOne cat. Two cats.\n\nA dog.\n\n\u200b\n"


def build(folder: Path, text: str = TEXT, heldout_fraction: float = 0.0, vocab_size: int = 300) -> OpenStore:
    (folder / "a.txt").write_text(text, encoding="utf-8")
    value = {
        "output_dir": str(folder / "run"),
        "corpus": {"files": [str(folder / "a.txt")], "heldout_fraction": heldout_fraction},
        "tokenizer": {"vocab_size": vocab_size},
    }
    return prepare_store(recipe(value), lambda line: None)


def test_offsets_nest_and_give_the_text_back(tmp_path: Path):
    store = build(tmp_path)
    side, tokenizer = store.train, store.tokenizer
    assert (side.num_documents, side.num_sentences, side.num_pairs) == (3, 6, 3)
    assert [array.dtype for array in (side.ids, side.sentences, side.documents, side.pairs)] == [
        np.uint16,
        *[np.uint64] * 3,
    ]
    documents = [
        [
            tokenizer.decode(side.ids[int(side.sentences[s]) : int(side.sentences[s + 1])])
            for s in range(int(first), int(last))
        ]
        for first, last in zip(side.documents[:-1], side.documents[1:], strict=True)
    ]
    assert documents == [
        ["the cat sat.", "it purred!", "the dog left."],
        ["one cat.", "two cats."],
        ["a dog."],
    ]
    assert side.sentences[-1] == side.num_tokens == len(side.ids)
    assert side.pairs.tolist() == [int(d) - i for i, d in enumerate(side.documents)] == [0, 2, 3, 3]


def test_the_manifest_counts_what_is_there(tmp_path: Path):
    store = build(tmp_path, TEXT + "\nNever seen before: ☃\n")
    manifest, train = store.manifest, store.manifest.train
    assert (train.documents, train.one_sentence_documents, train.sentences) == (4, 2, 7)
    assert (manifest.dropped_documents, manifest.dropped_sentences) == (1, 1)  # a zero-width space alone
    assert train.tokens == store.train.num_tokens
    assert (
        train.words
        == len([w for p in TEXT.split("\n") for s in split_sentences(p, "en") for w in s.split()]) + 4 - 1
    )
    uses = np.bincount(store.train.ids)
    shares = uses[uses > 0] / uses.sum()
    assert manifest.unigram_entropy == pytest.approx(-(shares * np.log(shares)).sum())
    assert manifest.tokens_per_word == train.tokens / train.words
    assert train.unk_tokens == int((store.train.ids == store.tokenizer.unk_id).sum())
    assert manifest.unk_rate == train.unk_tokens / train.tokens


def test_the_entropy_of_equal_shares_is_the_log_of_their_number():
    assert unigram_entropy(np.array([0, 5, 5, 5, 5])) == pytest.approx(np.log(4))
    assert unigram_entropy(np.zeros(3, np.int64)) == 0.0


def test_an_empty_side_can_be_opened(tmp_path: Path):
    heldout = build(tmp_path).heldout
    assert (heldout.num_tokens, heldout.num_sentences, heldout.num_documents, heldout.num_pairs) == (
        0,
        0,
        0,
        0,
    )
    assert heldout.ids.dtype == np.uint16


def test_ids_are_as_small_as_the_vocabulary_allows():
    assert [ids_dtype(size).itemsize for size in (300, 65_536, 65_537)] == [2, 2, 4]


def test_what_is_no_store_is_an_error(tmp_path: Path):
    with pytest.raises(
        UserError, match=r"no token store: it has no manifest.json. Build one: bertcli prepare"
    ):
        open_store(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "^[^:]*: a token store of format 99; this program reads format 3"),
        ({"surprise": 1}, "manifest.json: damaged: .*surprise"),
        ({"vocab_size": "many"}, "manifest.json: damaged: vocab_size: Input should be a valid integer"),
        ({"arrays": {}}, "manifest.json: damaged: its counts and sizes contradict each other"),
        ({"tokenizer_hash": "0" * 64}, "not the tokenizer that made this store"),
    ],
)
def test_a_changed_manifest_is_an_error(tmp_path: Path, change: dict[str, object], message: str):
    folder = build(tmp_path).folder
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(UserError, match=message):
        open_store(folder)


def test_a_damaged_store_is_an_error(tmp_path: Path):
    folder = build(tmp_path).folder
    ids = folder / "train" / "ids.bin"
    size = ids.stat().st_size
    ids.write_bytes(ids.read_bytes()[:-2])
    with pytest.raises(UserError, match=f"ids.bin: damaged: it has {size - 2} bytes, {size} were written"):
        open_store(folder)
    ids.unlink()
    with pytest.raises(UserError, match=r"ids.bin: damaged: it is missing.*prepare CONFIG --overwrite"):
        open_store(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(UserError, match=r"manifest.json: damaged"):
        open_store(folder)


def test_what_to_do_about_a_store_without_its_note_is_what_works(tmp_path: Path):
    folder = build(tmp_path).folder
    (folder / ".bertcli.json").write_text("damaged")
    manifest = (folder / "manifest.json").read_text()
    for damaged in (manifest.replace('"version": 3', '"version": 1'), "{"):
        (folder / "manifest.json").write_text(damaged)
        with pytest.raises(UserError) as error:
            open_store(folder)
        assert str(error.value).endswith(f"move {folder} elsewhere, then bertcli prepare CONFIG")


def test_offsets_that_do_not_end_where_the_next_array_does_are_an_error(tmp_path: Path):
    folder = build(tmp_path).folder
    sentences = np.fromfile(folder / "train" / "sentences.bin", "<u8")
    end = sentences[-1]
    sentences[-1] += 1
    sentences.tofile(folder / "train" / "sentences.bin")
    with pytest.raises(UserError, match=f"sentences.bin: damaged: its offsets do not end at {end}"):
        open_store(folder)


def test_an_array_larger_than_memory_is_not_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing but the speed changes."""
    folder = build(tmp_path).folder
    as_usual = open_store(folder).train
    monkeypatch.setattr("bertcli.corpus.token_store._MEMORY", 1)
    assert np.array_equal(open_store(folder).train.ids, as_usual.ids)
