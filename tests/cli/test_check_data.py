"""`bertcli check-data` through the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from bertcli.cli.data import _token_rows
from tests.finetunes import spam_config, spam_files
from tests.small_runs import run_process, small_config, write_config, write_corpus


@pytest.fixture
def config(tmp_path: Path) -> Path:
    corpus = write_corpus(tmp_path / "corpus.txt")
    return write_config(tmp_path / "config.yaml", small_config(corpus, tmp_path / "run"))


def test_a_corpus_is_judged_and_nothing_is_written(run_bertcli, config: Path) -> None:
    before = sorted(os.listdir(config.parent))
    code, out, err = run_bertcli("check-data", config, "--json")
    values = json.loads(out)
    assert (code, values["kind"], values["would_fail"]) == (0, "pretraining", False)
    assert values["documents"] + values["heldout_documents"] == 40
    assert values["tokens_from"] == "all"
    assert "training a WordPiece vocabulary of 400 entries" in err
    with open(config.parent / "corpus.txt", "a", encoding="utf-8") as file:
        file.write("\n\n\u200b\n")
    code, table, _ = run_bertcli("check-data", config)
    assert code == 0
    assert "\nleft out     1 document and 1 sentence without a token\n" in table
    assert f"{values['tokens']:,} tokens" in table
    assert f"{values['pairs']:,} places give a true pair" in table
    assert f"{values['steps_per_epoch']:,} steps, {values['pairs_per_epoch']:,} pairs" in table
    assert sorted(os.listdir(config.parent)) == before


def test_a_vocabulary_that_tokens_trained_is_not_trained_again(run_bertcli, config: Path) -> None:
    store = ("--set", "corpus.store=null")
    _, first, err = run_bertcli("check-data", config, "--json", "--tokens", *store)
    assert "training a WordPiece vocabulary of 400 entries" in err
    _, second, err = run_bertcli("check-data", config, "--json", "--tokens", *store)
    assert "training" not in err
    figures = [json.loads(out) | {"seconds": 0} for out in (first, second)]
    assert figures[0] == figures[1]
    _, _, err = run_bertcli("check-data", config, "--tokens", *store, "--set", "tokenizer.vocab_size=300")
    assert "training a WordPiece vocabulary of 300 entries" in err
    code, out, err = run_bertcli("prepare", config, "--json", *store)
    assert (code, "training" in err) == (0, False)
    assert f"taking the vocabulary in {config.parent / 'run' / 'store.partial'}\n" in err
    assert json.loads(out)["tokens"] == figures[0]["tokens"]


def test_estimate_trains_no_vocabulary_and_a_run_takes_that_of_show_batch(run_bertcli, config: Path) -> None:
    before = sorted(os.listdir(config.parent))
    _, _, err = run_bertcli("estimate", config)
    assert "training" not in err
    assert sorted(os.listdir(config.parent)) == before
    _, _, err = run_bertcli("show-batch", config, "-n", "1")
    assert "training a WordPiece vocabulary" in err
    for command in ("show-batch", "estimate", "pretrain"):
        code, _, err = run_bertcli(command, config)
        assert (code, "training a" in err) == (0, False)


def test_a_corpus_that_would_fail_is_exit_code_1_with_what_to_do(run_bertcli, config: Path) -> None:
    text = config.parent / "corpus.txt"
    text.write_bytes(text.read_bytes().replace("“".encode(), b"\x93"))
    code, out, _ = run_bertcli("check-data", config)
    assert code == 1
    first = out.partition("1. the run would fail: ")[2]
    assert first.startswith(f"{text}: bytes that are not utf-8; ")
    assert "     line 7: \\x93Wedlock suits you" in first
    assert "name it in corpus.encoding (for some of the files, in corpus.encodings), for example" in first
    assert "tokens       not counted: mend first what fails" in out


def test_labeled_files_are_judged(run_bertcli, tmp_path: Path) -> None:
    spam_files(tmp_path)
    config = write_config(tmp_path / "config.yaml", spam_config(tmp_path))
    code, out, _ = run_bertcli("check-data", config)
    assert code == 0
    assert out.startswith("train: 96 rows; ham ")
    assert "\nepoch: 6 steps\n" in out
    code, out, _ = run_bertcli("check-data", config, "--json", "--set", "task.max_length=128")
    values = json.loads(out)
    assert (code, values["kind"], values["rows"]) == (1, "fine-tuning", {"train": 96, "dev": 32})
    assert "64 positions" in values["findings"][0]["problem"]
    with open(tmp_path / "dev.tsv", "a") as file:
        file.write("eggs\ta label of its own\n")
    code, out, _ = run_bertcli("check-data", config)
    assert code == 1
    assert "1. the run would fail: labels that the model does not learn" in out
    (tmp_path / "train.tsv").write_text("label\tmessage\n")
    code, out, _ = run_bertcli("check-data", config)
    assert (code, out.partition("\n")[0]) == (1, "the rows could not be counted")


def test_bad_usage_is_exit_code_2(run_bertcli, config: Path, tmp_path: Path) -> None:
    spam_files(tmp_path)
    labeled = write_config(tmp_path / "labeled.yaml", spam_config(tmp_path))
    for arguments, problem in [
        ((tmp_path / "no.yaml",), "no such config file"),
        ((config, "--set", "task.type=regression"), "this one has both"),
        ((write_config(tmp_path / "a.yaml", {"output_dir": "x"}),), "this one has neither"),
        ((config, "--set", "corpus.langauge=de"), "language"),
        ((config, "--set", "corpus.files=[nowhere]"), "no such file or folder"),
        ((labeled, "--tokens"), "--tokens: only for a corpus"),
    ]:
        code, out, err = run_bertcli("check-data", *arguments)
        assert (code, out) == (2, "")
        assert problem in err


def test_no_torch_is_imported_for_a_corpus(config: Path) -> None:
    result = run_process("check-data", config, env=os.environ | {"PYTHONPROFILEIMPORTTIME": "1"})
    assert result.returncode == 0
    assert " torch\n" not in result.stderr


def test_what_is_not_counted_is_said_with_how_to() -> None:
    assert "--tokens trains it first" in _token_rows({"tokens_from": None}, False)["tokens"]


def test_a_sample_and_a_store_are_named_as_the_source() -> None:
    figures = yaml.safe_load(
        "{tokens_from: sample, tokens_error: 0.002, steps_per_epoch: 5, pairs_per_epoch: 40, epochs: 2.0, "
        "vocab_size: 400, tokens_per_word: 1.5, unk_rate: 0.0, unigram_entropy: 6.0}"
    )
    assert _token_rows(figures, False)["vocabulary"].endswith(", a sample: ± 0.40%")
    assert _token_rows(figures | {"tokens_from": "store"}, False)["vocabulary"].endswith(", from the store")
