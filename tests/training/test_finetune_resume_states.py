"""Runs that keep more than weights and AdamW's moments are resumed to the last bit too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from bertcli.folders.task_folder import load_task_folder
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.finetunes import Killed, kill_at, rows_but_times, run, spam_config, spam_files
from tests.small_runs import read_rows


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


def test_a_regression_keeps_the_numbers_standardized_until_its_end(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run has the same bits; the final model gives the raw numbers to everyone."""
    rows = [f"{'good ' * (i % 5) + 'bad ' * (4 - i % 5)}{i}\t{1000 + 100 * (i % 5)}" for i in range(40)]
    (tmp_path / "stars.tsv").write_text("\n".join(["text\tstars", *rows]) + "\n")
    task = {"type": "regression", "text": "text", "label": "stars", "max_length": 32}
    own = spam_config(files, training={"epochs": 2}, checkpoint={"every_steps": 2})
    own["task"] = task | {"train": str(tmp_path / "stars.tsv"), "dev_fraction": 0.2}

    run(own | {"output_dir": str(tmp_path / "straight")})
    with monkeypatch.context() as patch:
        kill_at(patch, "save", 4)
        with pytest.raises(Killed):
            run(own | {"output_dir": str(tmp_path / "killed")})
    done = run(own | {"output_dir": str(tmp_path / "killed")}, resume=True)
    for name in ("model/model.safetensors", "model/config.json", "checkpoints/best/model.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()

    assert "bertcli_standardization" not in json.loads((done.model / "config.json").read_text())
    text = "good good bad 7"
    checkpoint = tmp_path / "straight" / "checkpoints" / "best"
    assert "bertcli_standardization" in json.loads((checkpoint / "config.json").read_text())
    ids = torch.tensor([Tokenizer.load(done.model).encode(text)])
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(done.model)
    values = [theirs(ids).logits.item()]
    for folder in (done.model, checkpoint):
        model = load_task_folder(folder).model.eval()
        values.append(model(ids, torch.zeros_like(ids)).item())
    assert values == pytest.approx([values[0]] * 3, rel=1e-6)
    assert 900 < values[0] < 1500  # where it starts; without standardization far from there for long

    again = run(own | {"output_dir": str(tmp_path / "again"), "model": str(done.model)})
    assert again.scores is not None
    assert done.scores is not None
    assert again.scores.metrics["mean_squared_error"] < 1.5 * done.scores.metrics["mean_squared_error"]
    assert done.scores.loss == pytest.approx(done.scores.metrics["mean_squared_error"], rel=1e-6)


def test_muon_resumes_to_the_bit_too(files: Path, tmp_path: Path) -> None:
    def muon(name: str) -> dict[str, Any]:
        training = {"optimizer": "muon", "epochs": 3}
        return spam_config(
            files, output_dir=str(tmp_path / name), training=training, checkpoint={"every_steps": 5}
        )

    run(muon("undisturbed"))
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "train", 12)
        with pytest.raises(Killed):
            run(muon("killed"))
    run(muon("killed"), resume=True)
    train = read_rows(tmp_path / "killed" / "metrics.jsonl", "train")
    assert train[-1]["loss"] < train[0]["loss"]
    last = "checkpoints/step-00000018/optimizer.safetensors"
    assert b"query.weight/momentum" in (tmp_path / "killed" / last).read_bytes()
    for name in ("model/model.safetensors", last):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()


def test_windows_of_long_texts_are_resumed_with_the_same_bits(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        spam_config(
            files,
            output_dir=str(tmp_path / name),
            task={"windows": "max", "doc_stride": 8},
            training={"epochs": 2},
            checkpoint={"every_steps": 5},
        )
        for name in ("undisturbed", "killed")
    ]
    run(runs[0])
    with monkeypatch.context() as patch:
        kill_at(patch, "train", step=8)
        with pytest.raises(Killed):
            run(runs[1])
    run(runs[1], resume=True)
    one, other = (Path(each["output_dir"]) for each in runs)
    assert rows_but_times(one / "metrics.jsonl") == rows_but_times(other / "metrics.jsonl")
    weights = ((each / "model" / "model.safetensors").read_bytes() for each in (one, other))
    assert next(weights) == next(weights)
