"""`bertcli evaluate MODEL --corpus`: text is read as the run that made the model read its own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import transformers
import yaml

from bertcli.batches.share import Share
from bertcli.folders.model_folder import save_model_folder
from bertcli.inference import evaluate_corpus
from bertcli.training.heldout import HeldoutBatches, text_store
from tests.decided import data_config
from tests.folders.folders import random_model, tiny_tokenizer
from tests.parity.transformers_side import odd_config, plain_evaluation, saved_by_transformers

LINE = "the cat sat on the mat . the dog ran in the dark . it was a house of the night ."


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run on JSON lines with a key of their own, in rows of 17 tokens."""
    rows = "".join(json.dumps({"body": LINE}) + "\n" for _ in range(6))
    (tmp_path / "text.jsonl").write_text(rows)
    corpus = {"files": ["gone.jsonl"], "format": "jsonl", "text_key": "body", "language": "de"}
    model = {"max_positions": 19}
    config = {"output_dir": "x", "corpus": corpus, "data": {"max_length": 17}, "model": model}
    for folder in (tmp_path / "run" / "model", tmp_path / "run" / "checkpoints" / "step-1" / "model"):
        save_model_folder(folder, random_model(), tiny_tokenizer(), None, 17)
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "run"


@pytest.mark.parametrize("part", ["", "model", "checkpoints/step-1"])
def test_length_language_and_key_are_the_runs(run_bertcli, run: Path, part: str) -> None:
    code, out, err = run_bertcli("evaluate", run / part, "--corpus", run.parent / "text.jsonl", "--json")
    assert (code, "mlm_loss" in json.loads(out)) == (0, True), err
    assert f"language de, format jsonl, text_key body, encoding utf-8, as in {run / 'config.yaml'}\n" in err
    assert "rows of 17 tokens, the training length in " in err


def test_options_come_first(run_bertcli, run: Path) -> None:
    (run.parent / "other.jsonl").write_text(json.dumps({"text": LINE}) + "\n" + json.dumps({"text": LINE}))
    code, _, err = run_bertcli(
        *("evaluate", run, "--corpus", run.parent / "other.jsonl", "--text-key", "text"),
        *("--language", "en", "--max-length", "16"),
    )
    assert code == 0, err
    assert f"reading: format jsonl, encoding utf-8, as in {run / 'config.yaml'}\n" in err
    assert "rows of" not in err
    (run.parent / "text.txt").write_text(f"{LINE}\n\n{LINE}\n")
    code, _, err = run_bertcli("evaluate", run, "--corpus", run.parent / "text.txt", "--format", "text")
    assert (code, f"language de, encoding utf-8, as in {run / 'config.yaml'}\n" in err) == (0, True)


def test_a_sample_is_laid_out_in_its_own_way(run_bertcli, run: Path) -> None:
    code, _, err = run_bertcli("evaluate", run, "--corpus", "classics", "--batches", 1, "--batch-size", 2)
    assert (code, f"reading: language de, as in {run / 'config.yaml'}\n" in err) == (0, True)


def test_a_folder_from_elsewhere_has_the_defaults(run_bertcli, run: Path) -> None:
    (run / "config.yaml").write_text("thesis: 1\n")
    path = run / "model" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": 10**30}))
    (run.parent / "text.txt").write_text(f"{LINE}\n\n{LINE}\n")
    code, _, err = run_bertcli("evaluate", run, "--corpus", run.parent / "text.txt")
    assert code == 0, err
    assert "is not the config of a pretraining run, and is ignored" in err
    assert "rows of 19 tokens; the model's training length is unknown" in err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("--language", "english", "--language: 'english'"), ("--format", "foo", "foo")],
)
def test_impossible_options_are_refused_in_words(
    run_bertcli, run: Path, option: str, value: str, message: str
) -> None:
    code, _, err = run_bertcli("evaluate", run, "--corpus", run.parent / "text.jsonl", option, value)
    assert (code, message in err) == (2, True), err


@pytest.mark.parametrize("documents", [["one"], ["many", "one", "many"], ["many"] * 40], ids=len)
def test_each_token_is_read_once_and_the_losses_are_those_of_a_plain_loop(
    run_bertcli, tmp_path: Path, documents: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate_corpus, "resolve_precision", lambda *given: "fp32")
    folder, text = tmp_path / "model", tmp_path / "text.txt"
    theirs = saved_by_transformers(folder, transformers.BertForPreTraining, odd_config())
    lines = {
        "one": "The cat sat on the mat.",
        "many": f"{LINE}\nHe ran and the dog ran.\nThe house was dark.",
    }
    text.write_text("\n\n".join(lines[kind] for kind in documents))
    options = ("--max-length", 19, "--batch-size", 8, "--json")
    code, out, err = run_bertcli("evaluate", folder, "--corpus", text, *options)
    assert code == 0, err
    scores = json.loads(out)
    store = text_store(folder, {"files": [str(text)], "encoding": "utf-8"}, str(tmp_path / "run"), print)
    config = data_config(max_length=19)
    batches = HeldoutBatches(store.train, store.tokenizer, config, batch_size=8)
    losses, held = plain_evaluation(theirs, batches.steps(Share(8)))
    assert {name: scores.get(name) for name in losses} == pytest.approx(losses, abs=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text.read_text(), add_special_tokens=False).input_ids
    assert scores["tokens"] == scores["distinct_tokens"] == len(ids)
    assert {i: n for i, n in held.items() if i not in store.tokenizer.special_ids} == Counter(ids)
    assert scores.get("nsp_pairs", 0) == batches.num_pairs
    assert (batches.num_pairs > 0) == ("nsp_loss" in scores) == (len(documents) > 1)
    assert f"{len(ids):,} of the {len(ids):,} tokens are read, each once" in err
