"""Python gives what the command line prints, and loads nothing heavy before it is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertcli
from bertcli.training.optimizer import AdamW
from tests.finetunes import spam_config, spam_files
from tests.folders.folders import saved_model
from tests.small_runs import small_config, write_config, write_corpus

Bertcli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    saved_model(folder)
    return folder


def printed(run_bertcli: Bertcli, *arguments: object) -> list[dict[str, Any]]:
    code, out, _ = run_bertcli(*arguments, "--json")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def as_printed(result: object) -> Any:
    return json.loads(json.dumps(result))


def test_the_import_loads_nothing_heavy() -> None:
    program = (
        "import sys, bertcli\n"
        "heavy = {'torch', 'numpy', 'tokenizers', 'typer', 'yaml', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert callable(bertcli.load)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_masks_as_on_the_command_line(run_bertcli: Bertcli, folder: Path) -> None:
    texts = ["The [MASK] sat.", "A [MASK] and a [MASK]."]
    answers = bertcli.load(folder).fill_mask(texts, top_k=3)
    assert as_printed(answers) == printed(run_bertcli, "predict-mask", folder, *texts, "--top-k", 3)
    assert [len(answer["masks"]) for answer in answers] == [1, 2]


def test_one_text_is_a_list_of_one(folder: Path) -> None:
    model = bertcli.load(folder)
    assert model.fill_mask("A [MASK].") == model.fill_mask(["A [MASK]."])
    assert model.fill_mask([]) == []
    assert model.embed([]).shape == (0, model.embed("A cat.").shape[1])


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("multi-label", "The cat."),
        ("classification", ("The cat.", "A dog.")),
        ("regression", ("The cat.", "A dog.")),
        ("tokens", "The cat sat."),
        ("questions", ("Who sat?", "The cat sat.")),
        ("choices", ("It was", "dark", "he")),
    ],
)
def test_answers_as_on_the_command_line(
    run_bertcli: Bertcli, models: Path, kind: str, row: str | tuple[str, ...]
) -> None:
    (answer,) = bertcli.load(models / kind).predict([row])
    texts = [row] if isinstance(row, str) else row
    assert [as_printed(answer)] == printed(run_bertcli, "predict", models / kind, *texts)


def test_suggestions_as_on_the_command_line(run_bertcli: Bertcli, models: Path, tmp_path: Path) -> None:
    texts = ["the cat ran", "a dog", "", "it was dark", "THE CAT RAN !", "she sat on a mat"]
    (tmp_path / "pool.txt").write_text("\n".join(texts) + "\n")
    found = bertcli.load(models / "multi-label").suggest(texts, 3)
    assert 2 <= len(found) <= 3
    command = ("suggest", models / "multi-label", tmp_path / "pool.txt", "-n", 3)
    assert as_printed(found) == printed(run_bertcli, *command)
    with pytest.raises(bertcli.UserError, match="number"):
        bertcli.load(models / "multi-label").suggest(texts, 0)


def test_vectors_as_on_the_command_line(run_bertcli: Bertcli, folder: Path) -> None:
    texts = ["The cat sat on it.", "A dog."]
    vectors = bertcli.load(folder).embed(texts, normalize=True)
    lines = printed(run_bertcli, "embed", folder, *texts, "--normalize")
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, np.array([line["vector"] for line in lines], dtype=np.float32))


def test_attention_as_on_the_command_line(run_bertcli: Bertcli, folder: Path) -> None:
    found = bertcli.load(folder).attention("The cat sat.")
    assert [as_printed(found)] == printed(run_bertcli, "attention", folder, "The cat sat.")


def test_a_string_is_a_text_also_where_the_command_line_would_read_it(
    folder: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cat").write_text("a dog\n")
    for text in ("-", "cat", ""):
        assert bertcli.load(folder).attention(text)["texts"] == (text,)
        assert bertcli.load(models / "multi-label").attention(text)["texts"] == (text,)
        assert len(bertcli.load(models / "multi-label").predict(text)) == 1
        assert bertcli.load(folder).embed(text).shape[0] == 1


def test_a_model_of_vectors_embeds_and_predicts_nothing(models: Path) -> None:
    model = bertcli.load(models / "vectors")
    assert model.embed("The cat.").shape == (1, 15)
    assert model.attention("The cat.")["texts"] == ("The cat.",)
    for row in ("The cat.", ("The cat.", "A dog.")):
        with pytest.raises(bertcli.UserError, match="its answers are vectors: give it to bertcli embed"):
            model.predict([row])


def test_wrong_input_is_a_user_error(models: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(bertcli.UserError, match="no such folder"):
        bertcli.load(tmp_path / "nowhere")
    with pytest.raises(bertcli.UserError, match=r"row 2: .* a pair of texts, as a tuple; found 1"):
        bertcli.load(models / "classification").predict([("a", "b"), "alone"])
    with pytest.raises(bertcli.UserError, match="row 1: the model reads a text; found 2"):
        bertcli.load(models / "multi-label").predict([("a", "b")])
    with pytest.raises(bertcli.UserError, match="the row: the model reads a text; found 3"):
        bertcli.load(folder).attention(("a", "b", "c"))
    with pytest.raises(bertcli.UserError, match="the config: 2 problems in the config:"):
        bertcli.pretrain({"output_dir": str(tmp_path / "run"), "corpse": {}})
    with pytest.raises(bertcli.UserError, match="no such config file"):
        bertcli.finetune(tmp_path / "nowhere.yaml")
    assert bertcli.load(folder).embed("still usable").shape[0] == 1


def test_a_run_from_text_to_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = write_corpus(tmp_path / "corpus.txt")
    config = small_config(corpus, tmp_path / "run", training={"steps": 2}, evaluation={"batches": 1})
    done = bertcli.pretrain(config)
    assert done == {"model": str(tmp_path / "run" / "model")}
    (answer,) = bertcli.load(tmp_path / "run").fill_mask("The [MASK] was dark.")
    assert answer["filled"]
    assert capsys.readouterr().out == ""
    assert bertcli.pretrain(write_config(tmp_path / "config.yaml", config), resume=True) == done


def test_ctrl_c_saves_a_checkpoint_and_a_resume_ends_as_the_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "corpus.txt")
    keys: dict[str, Any] = {"training": {"steps": 6}, "evaluation": {"batches": 1}}
    whole, stopped = (small_config(corpus, tmp_path / name, **keys) for name in ("whole", "stopped"))
    bertcli.pretrain(whole)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    optimizer_step, steps = AdamW.step, iter(range(1, 7))

    def step(self: AdamW, *arguments: Any) -> Any:
        if next(steps) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return optimizer_step(self, *arguments)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(AdamW, "step", step)
            with pytest.raises(KeyboardInterrupt):
                bertcli.pretrain(stopped)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (tmp_path / "stopped" / "model").exists()
    done = bertcli.pretrain(stopped, resume=True)
    assert done == {"model": str(tmp_path / "stopped" / "model")}
    files = (tmp_path / name / "model" / "model.safetensors" for name in ("whole", "stopped"))
    assert len({file.read_bytes() for file in files}) == 1


def test_labels_are_learned_in_a_thread_too(tmp_path: Path) -> None:
    config = spam_config(spam_files(tmp_path), training={"epochs": 0.1})
    results: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: results.append(bertcli.finetune(config)))
    thread.start()
    thread.join()
    (done,) = results
    assert done["model"] == str(tmp_path / "run" / "model")
    assert 0 <= done["accuracy"] <= 1
    assert done["verdict"]


@pytest.mark.parametrize("verb", ["finetune", "pretrain"])
def test_a_second_run_in_another_thread_is_refused(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would draw their dropout from torch's one generator."""
    from bertcli.training import train as training

    said: list[str] = []
    if verb == "finetune":
        config = spam_config(spam_files(tmp_path), training={"epochs": 0.3})
    else:
        text = write_corpus(tmp_path / "corpus.txt")
        config = small_config(text, tmp_path / "run", training={"steps": 2, "warmup_steps": 0})
    train, begin = getattr(bertcli, verb), getattr(training, verb)

    def second() -> None:
        try:
            train(config | {"output_dir": str(tmp_path / "other")})
        except bertcli.UserError as error:
            said.append(str(error))

    def first(*arguments: Any) -> Any:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        return begin(*arguments)

    monkeypatch.setattr(training, verb, first)
    train(config)
    assert len(said) == 1
    assert "another run is training in this process" in said[0]
    assert not (tmp_path / "other").exists()
    monkeypatch.undo()
    train(config | {"output_dir": str(tmp_path / "other")})
    weights = [(tmp_path / run / "model/model.safetensors").read_bytes() for run in ("run", "other")]
    assert weights[0] == weights[1]
