"""A store of several sources: each is read in its own way, and stands after the one before it."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertcli.advice.check.pretraining import check_pretraining
from bertcli.cli.stores import summarize
from bertcli.config.run import PretrainRecipe
from bertcli.corpus import build, chunks
from bertcli.corpus.build import prepare_store
from bertcli.corpus.files import corpus_files
from bertcli.corpus.sample import sample_paragraphs, sample_rates
from bertcli.corpus.token_store import OpenStore, TokenStore, open_store
from bertcli.system.errors import UserError
from tests.corpus.builds import contents, make_config, short_chapters, silent, write_corpus_folder
from tests.decided import tokenizer_config


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_corpus_folder(tmp_path)


def of_sources(folder: Path, *sources: dict[str, Any], **corpus: Any) -> PretrainRecipe:
    given = make_config(folder, **corpus).model_dump(exclude_unset=True)
    given["corpus"] = {**given["corpus"], "files": [], "sources": sources}
    return PretrainRecipe.model_validate(given)


def three(folder: Path) -> list[dict[str, Any]]:
    """A compressed text, JSON lines, and three long documents."""
    chapters = short_chapters()
    lines = [json.dumps({"story": chapter}) for chapter in chapters[2:80:2]]
    (folder / "some.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for number in range(3):
        text = "\n".join(chapters[number * 9 + 1 : number * 9 + 9 : 2])
        (folder / f"book-{number}.txt").write_text(text, encoding="utf-8")
    return [
        {"files": str(folder / "corpus"), "name": "chapters"},
        {"files": str(folder / "some.jsonl"), "format": "jsonl", "text_key": "story"},
        {"files": str(folder / "book-*.txt"), "document": "file", "name": "books"},
    ]


def words(store: OpenStore, side: TokenStore) -> list[str]:
    """The text of a source's documents on a side."""
    starts = side.sentences[side.starts].astype(int)
    return [store.tokenizer.decode(side.ids[a:b].tolist()) for a, b in itertools.pairwise(starts)]


def test_each_source_is_read_in_its_own_way(folder: Path) -> None:
    store = prepare_store(of_sources(folder, *three(folder)), silent)
    assert [source.name for source in store.manifest.sources] == ["chapters", "some", "books"]
    texts = [
        "\n".join(short_chapters()),
        "\n".join(json.loads(line)["story"] for line in (folder / "some.jsonl").read_text().splitlines()),
        "\n".join(path.read_text() for path in folder.glob("book-*.txt")),
    ]
    for number, source in enumerate(store.manifest.sources):
        train, heldout = store.train.sources[number], store.heldout.sources[number]
        for side, counts in ((train, source.train), (heldout, source.heldout)):
            assert (side.num_documents, side.num_sentences) == (counts.documents, counts.sentences)
            assert (side.num_tokens, side.num_pairs) == (counts.tokens, counts.sentences - counts.documents)
        text = texts[number]
        own = {word for each in words(store, train) for word in each.split() if word.isalpha()}
        assert len(own - set(text.lower().split())) < 0.1 * len(own)
        assert heldout.num_documents > 0
    assert store.manifest.text.tokens == store.train.num_tokens + store.heldout.num_tokens


def test_few_documents_of_a_source_are_cut_and_those_of_others_stay_whole(folder: Path) -> None:
    lines: list[str] = []
    store = prepare_store(of_sources(folder, *three(folder)), lines.append)
    assert [line.split(",")[0] for line in lines if line.startswith("held out")] == [
        f"held out: {store.heldout.sources[number].num_documents} runs of sentences" for number in (1, 2)
    ]
    assert any("because the source books has only 3 documents" in line for line in lines)
    chapters, _, books = store.manifest.sources
    assert not any(chapters.pieces.values())
    assert sum(books.pieces["train"]) == books.train.documents > 3
    texts = store.train.sources[2].texts[0]
    assert texts is not None
    assert len(texts) == 3 + 1
    assert texts[0] == store.train.sources[2].first_sentence
    assert store.train.sources[0].texts == (None,)
    assert [each.num_texts for each in store.train.sources][::2] == [chapters.train.documents, 3]


def test_files_and_the_same_files_as_sources_give_the_same_arrays(folder: Path) -> None:
    whole = prepare_store(make_config(folder, heldout_fraction=0.0), silent)
    vocabulary = tokenizer_config(path=str(whole.folder / "tokenizer"))
    corpus = folder / "corpus"
    sources = [{"files": [str(corpus / "a.txt"), str(corpus / "b.txt.gz")]}, {"files": str(corpus / "c.txt")}]
    config = of_sources(folder, *sources, store=str(folder / "other"), heldout_fraction=0.0)
    config = config.model_copy(update={"tokenizer": vocabulary})
    split = prepare_store(config, silent)
    names = [name for name in contents(whole.folder) if name.endswith(".bin")]
    assert {name: contents(split.folder)[name] for name in names} == {
        name: contents(whole.folder)[name] for name in names
    }


def test_an_interrupted_build_goes_on_in_any_source(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 5_000)
    monkeypatch.setattr(build, "JOURNAL_SECONDS", 0)
    config = of_sources(folder, *three(folder))
    expected = contents(prepare_store(config, silent, processes=0).folder)
    encode = build.encode_chunks
    for stop in (1, 9, 14, 18):
        shutil.rmtree(folder / "run" / "store")

        def some(*given: Any, stop: int = stop, **named: Any) -> Any:
            for number, pair in enumerate(encode(*given, **named)):
                if number == stop:
                    raise KeyboardInterrupt
                yield pair

        with monkeypatch.context() as patch:
            patch.setattr(build, "encode_chunks", some)
            with pytest.raises(KeyboardInterrupt):
                prepare_store(config, silent, processes=0)
        assert contents(prepare_store(config, silent, processes=0).folder) == expected


def test_the_store_stays_when_weights_and_names_change(folder: Path) -> None:
    sources = three(folder)
    first = prepare_store(of_sources(folder, *sources), silent)
    changed = [source | {"weight": 1.0, "name": f"n{number}"} for number, source in enumerate(sources)]
    config = of_sources(folder, *changed)
    again = prepare_store(config, silent)
    assert again.manifest == first.manifest
    assert list(summarize(again, config.corpus.source_names, seconds=1.0)["sources"]) == ["n0", "n1", "n2"]
    with pytest.raises(UserError, match=r"the store was built from something else:\n  corpus\.sources"):
        prepare_store(of_sources(folder, *changed[:2]), silent)


def test_a_given_name_is_never_that_of_another_source(tmp_path: Path) -> None:
    sources = [{"files": "a/web"}, {"files": "b", "name": "web"}, {"files": "c/web"}]
    corpus = make_config(tmp_path, files=[], sources=sources).corpus
    assert corpus.source_names == ["web 2", "web", "web 3"]


def test_a_file_is_in_one_source(folder: Path) -> None:
    path = str(folder / "corpus" / "a.txt")
    config = of_sources(folder, {"files": path, "name": "own"}, {"files": str(folder / "corpus")})
    with pytest.raises(UserError, match=r"corpus\.sources\.1\.files: .*a\.txt is also in the source own"):
        prepare_store(config, silent)


def test_a_missing_file_is_named_with_its_source(folder: Path) -> None:
    config = of_sources(folder, {"files": "classics"}, {"files": str(folder / "nowhere.txt")})
    with pytest.raises(UserError, match=r"corpus\.sources\.1\.files: .*nowhere\.txt: no such file"):
        corpus_files(config.corpus)
    assert [file.source for file in corpus_files(config.corpus, missing_ok=True)] == [0]


@pytest.mark.parametrize(("weights", "rates"), [([1.0, 1.0], [2.0, 2 / 3]), ([3.0, 1.0], [3.0, 1 / 3])])
def test_the_vocabulary_is_trained_on_the_starting_shares(tmp_path: Path, weights, rates) -> None:
    paragraphs = [f"a paragraph with the number {number:04}" for number in range(400)]
    (tmp_path / "small.txt").write_text("\n\n".join(paragraphs[:100]), encoding="utf-8")
    (tmp_path / "large.txt").write_text("\n\n".join(paragraphs[100:]) + "\n\n", encoding="utf-8")
    config = of_sources(
        tmp_path,
        {"files": str(tmp_path / "small.txt"), "weight": [weights[0], 0.0]},
        {"files": str(tmp_path / "large.txt"), "weight": [weights[1], 9.0]},
    )
    files = corpus_files(config.corpus)
    assert sample_rates(files, config.corpus) == pytest.approx(rates, rel=0.01)
    taken = list(sample_paragraphs(files, config.corpus, sample_rates(files, config.corpus)))
    small = sum(int(each[-4:]) < 100 for each in taken)
    assert small / len(taken) == pytest.approx(weights[0] / sum(weights), abs=0.05)


def test_check_data_counts_what_the_store_will_hold(folder: Path) -> None:
    config = of_sources(folder, *three(folder))
    found = check_pretraining(config, tokenize_all=True, report=silent, processes=0).figures
    store = prepare_store(config, silent)
    train, heldout = store.manifest.train, store.manifest.heldout
    assert (found["documents"], found["heldout_documents"]) == (train.documents, heldout.documents)
    assert (found["sentences"], found["tokens"]) == (train.sentences, train.tokens)
    assert found["unigram_entropy"] == pytest.approx(store.manifest.unigram_entropy)


def test_a_damaged_bound_is_found_on_opening(folder: Path) -> None:
    store = prepare_store(of_sources(folder, *three(folder)), silent)
    path = store.folder / "train" / "documents.bin"
    offsets = np.fromfile(path, "<u8")
    offsets[store.train.bounds[1]] += 1
    offsets.tofile(path)
    with pytest.raises(UserError, match=r"documents\.bin: damaged: its offsets do not end at"):
        open_store(store.folder)
