"""A corpus judged before the run: its counts are the store's, and what it says would fail does fail."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.advice.check import lines as batches
from bertcli.advice.check import pretraining
from bertcli.batches.share import BatchSizes, num_steps
from bertcli.batches.stream import BatchStream
from bertcli.cli.stores import summarize
from bertcli.config.load import check_config
from bertcli.config.run import PretrainRecipe, with_values
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.corpus.token_store import OpenStore
from bertcli.system.errors import UserError
from bertcli.training.recipe import decide_recipe
from tests.advice.check.corpora import check, vocabulary
from tests.corpus.builds import make_config, silent
from tests.decided import data_config, tokenizer_config
from tests.finetunes import LETTERS, write_model
from tests.wordpieces import wordpiece


def prepared(store: OpenStore) -> dict[str, Any]:
    """What `prepare` says of a store, and its pairs, by the names of the check."""
    summary = summarize(store, [source.name for source in store.manifest.sources], seconds=1.0)
    for name in ("store", "files", "sources", "store_bytes", "seconds", "mb_per_second"):
        del summary[name]
    for name in ("tokens_per_word", "unigram_entropy"):
        summary[name] = pytest.approx(summary[name])
    return summary | {"pairs": store.train.num_pairs}


def assert_counts(config: PretrainRecipe, processes: int = 0) -> None:
    """What the check counts is what `prepare` then finds."""
    figures, findings = check(config, processes=processes)
    assert not any(finding.fails for finding in findings)
    expected = prepared(prepare_store(config, silent))
    assert {name: figures[name] for name in expected} == expected


@pytest.mark.parametrize("processes", [0, 2])
def test_the_counts_are_those_of_the_store(
    folder: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.setattr(batches, "CHUNK_CHARACTERS", 3000)
    monkeypatch.setattr(
        "bertcli.corpus.chunks.CHUNK_CHARACTERS", 2000
    )  # documents go on over several batches
    (folder / "corpus" / "odd.txt").write_text(
        "\x01\x02\n\n\x03 .\n\nTwo  blanks.\u00a0And one\u2003more.\n\x04\n"
    )
    assert_counts(make_config(folder), processes)


FORMATS = {
    "sentences": ("One sentence.\nTwo here. Not cut.\n\nAnother one.\nIts second.\n\nAlone.\n", {}),
    "jsonl": ("\n".join(json.dumps({"t": f"Text {n}. Of\ntwo lines."}) for n in range(6)), {"text_key": "t"}),
    "text": ("Hard-wrapped\nlines. A book.\n\nA second\nline.\n", {"document": "file", "join_lines": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_in_every_format(folder: Path, name: str) -> None:
    text, options = FORMATS[name]
    files = [folder / "one.txt", folder / "two.txt"]
    for number, file in enumerate(files):
        file.write_text(text.replace("Its", f"{number} its"))
    tokenizer = tokenizer_config(path=str(vocabulary(folder)))
    options = {"files": [str(file) for file in files], "format": name, "heldout_fraction": 0.0, **options}
    assert_counts(make_config(folder, tokenizer, store=str(folder / "store"), **options))


def test_a_store_that_stands_gives_its_tokens(folder: Path) -> None:
    config = make_config(folder)
    expected = prepared(prepare_store(config, silent))
    figures, _ = check(config)
    assert figures["tokens_from"] == "store"
    assert {name: figures[name] for name in expected} == expected


def test_a_sample_of_the_lines_estimates_the_tokens_of_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(folder, tokenizer_config(path=str(vocabulary(folder))))
    monkeypatch.setattr(pretraining, "SMALL_CORPUS", 0)
    exact, _ = check(config, tokenize_all=True)
    monkeypatch.setattr(pretraining, "TOKENIZED_BYTES", 30_000)
    sampled, _ = check(config)
    assert (exact["tokens_from"], sampled["tokens_from"]) == ("all", "sample")
    assert 0 < sampled["tokens_error"] < 0.05
    assert abs(sampled["tokens"] / exact["tokens"] - 1) < 4 * sampled["tokens_error"]
    assert sampled["documents"] == exact["documents"]


def test_without_a_vocabulary_tokens_are_counted_when_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretraining, "SMALL_CORPUS", 0)
    monkeypatch.setattr(pretraining, "SMALLEST_SAFE_VOCABULARY", 0)
    assert check(make_config(folder)).figures["tokens_from"] is None
    assert check(make_config(folder), tokenize_all=True).figures["tokens_from"] == "all"


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp"])
def test_steps_of_an_epoch_are_those_of_the_run(folder: Path, objective: str) -> None:
    data = {"objective": objective, "max_length": 64}
    given = {"data": data, "training": {"epochs": 1, "batch_size": 8}}
    given = check_config(PretrainConfig, make_config(folder).model_dump() | given, "test")
    config = decide_recipe(given, silent)
    figures, _ = check(config)
    store = prepare_store(config, silent)
    stream = BatchStream(store.train, store.tokenizer, config.data, config.seed, BatchSizes(8))
    frame = store.tokenizer.frame
    assert figures["steps_per_epoch"] == num_steps(config, frame, store.train.num_tokens)
    assert figures["pairs_per_epoch"] == 8 * figures["steps_per_epoch"]
    steps = with_values(config, {"training": {"epochs": None, "steps": 40}})
    assert check(steps).figures["epochs"] == pytest.approx(stream.tokens_until(40) / store.train.num_tokens)


def stops(config: PretrainRecipe) -> str:
    """The error that ends a run of `config` before its first step."""
    with pytest.raises(UserError) as error:
        start(config)
    return str(error.value)


def start(config: PretrainRecipe) -> None:
    """What a run does with its data before the first step."""
    store = prepare_store(config, silent)
    BatchStream(
        store.train, store.tokenizer, config.data, config.seed, BatchSizes(config.training.batch_size)
    )


FAILING: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "bytes in another encoding": (b"One. Two.\n\nCaf\xe9. Bar.\n\nMore. A.\n", {}, "bytes that are not utf"),
    "no text": (b"\n \n", {}, "the file holds no text"),
    "one document": (b"One. Two.\nThree. Four.\n", {}, "need two documents to train on"),
    "one to train on": (b"One. Two.\nThree.\n", {"heldout_fraction": 0.0}, "need two documents to train on"),
    "only single sentences": (b"One.\n\nTwo.\n\nThree.\n", {"heldout_fraction": 0.0}, "every document to"),
    "all held out": (b"One. A.\n\nTwo. B.\n\nThree.\n", {"heldout_fraction": 0.999999}, "holds out all of 3"),
    "no JSON": (b'{"text": "a"}\n{"text"\n', {"format": "jsonl"}, "a.txt, line 2: not JSON"),
    "no such key": (b'{"body": "a"}\n', {"format": "jsonl"}, "no key 'text'"),
    "no Parquet": (b"PAR1", {"format": "parquet"}, "not a readable Parquet file"),
    "truncated": (gzip.compress(b"One. Two.\n\nThree. Four.\n" * 9)[:-9], {}, "the .gz ends in mid-stream"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_what_would_fail_is_found_and_does_fail(folder: Path, name: str) -> None:
    data, options, problem = FAILING[name]
    file = folder / ("a.txt.gz" if name == "truncated" else "a.txt")
    file.write_bytes(data)
    tokenizer = tokenizer_config(path=str(vocabulary(folder)))
    config = make_config(folder, tokenizer, files=[str(file)], store=str(folder / "store"), **options)
    fails = [finding for finding in check(config).findings if finding.fails]
    assert problem in fails[0].problem
    assert stops(config)


@settings(max_examples=25)
@given(
    documents=st.lists(st.sampled_from(["One.", "One. Two.", "Three. Four.\nFive.", "\x01"]), max_size=6),
    fraction=st.sampled_from([0.0, 0.2, 0.5]),
    objective=st.sampled_from(["mlm", "mlm+nsp"]),
)
def test_a_run_fails_where_it_is_said_to(
    documents: list[str],
    fraction: float,
    objective: Literal["mlm", "mlm+nsp"],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "corpus").mkdir()
    for number, document in enumerate(documents):
        (folder / "corpus" / f"{number}.txt").write_text(document)
    wordpiece(LETTERS).save(folder / "tokenizer")
    config = make_config(
        folder, tokenizer_config(path=str(folder / "tokenizer")), heldout_fraction=fraction, document="file"
    )
    config = config.model_copy(update={"data": data_config(objective=objective)})
    if not documents:
        with pytest.raises(UserError, match="holds no files"):
            check(config)
    elif any(finding.fails for finding in check(config).findings):
        assert stops(config)
    else:
        start(config)


def test_a_vocabulary_too_small_for_the_text_is_found(folder: Path) -> None:
    config = make_config(folder, tokenizer_config(vocab_size=50))
    (finding,) = check(config).findings
    assert finding.fails
    assert finding.problem == stops(config)


def test_a_store_of_another_text_is_found(folder: Path) -> None:
    prepare_store(make_config(folder), silent)
    config = make_config(folder, language="de")
    (finding, *_) = check(config).findings
    assert finding.fails
    assert finding.problem == stops(config)


def test_rows_longer_than_the_initial_model_reads_are_found(folder: Path) -> None:
    model = write_model(folder / "bert")
    given = make_config(folder, heldout_fraction=0.2).model_dump()
    given |= {"model": {"init_from": str(model)}, "tokenizer": {}}
    config = check_config(PretrainConfig, given, "test")
    (finding, *_) = check(decide_recipe(config, silent)).findings
    assert finding.fails
    assert "data.max_length (128) is longer than the positions" in finding.problem
    given["model"]["max_positions"] = 128
    longer = check_config(PretrainConfig, given, "test")
    assert not any(finding.fails for finding in check(decide_recipe(longer, silent)).findings)


def test_wrong_bytes_are_named_with_their_places_and_read_over(folder: Path) -> None:
    right = check(make_config(folder)).figures
    with open(folder / "corpus" / "a.txt", "rb+") as file:
        text = file.read()
        at = text.index(b" the ", 1000) + 1
        file.seek(at)
        file.write(b"\xff\xfe")
    lines, line = len(text.splitlines()), text[:at].count(b"\n")
    figures, findings = check(make_config(folder))
    (finding,) = (finding for finding in findings if finding.fails)
    assert (
        finding.problem
        == f"{folder}/corpus/a.txt: bytes that are not utf-8; 1 of its {lines:,} lines has such bytes"
    )
    (place,) = finding.places
    assert "\\xff\\xfee " in place
    assert (figures["documents"], figures["lines"]) == (right["documents"], right["lines"])
    assert f", line {line + 1:,}: byte {at} (0xff) is not utf-8" in stops(make_config(folder))


def test_a_file_that_breaks_off_does_not_spoil_the_others(folder: Path) -> None:
    (folder / "corpus" / "aa.txt.gz").write_bytes(b"no gzip at all")
    figures, findings = check(make_config(folder))
    assert [finding.problem for finding in findings if finding.fails] == [stops(make_config(folder))]
    assert figures["documents"] + figures["heldout_documents"] > 20


def test_what_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        check(make_config(folder, files=[str(folder / "nowhere")]))
    with pytest.raises(UserError, match="'klingon' is not an encoding"):
        check(make_config(folder, encoding="klingon"))
