"""What two forms of a model are compared on, and the speeds beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bertcli.corpus.build import prepare_store
from bertcli.folders.onnx_source import read_sample
from bertcli.tasks.examples import TextExample
from bertcli.tokenizer.frame import Row
from tests.cli.test_export import exported
from tests.decided import recipe
from tests.folders.folders import saved_model
from tests.small_runs import small_config, write_config


def test_a_small_sample_is_read_again_until_there_are_32_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[tuple[int, list[list[int]]]] = []

    def speeds(models: dict[str, Any], rows: Sequence[Row], batch_size: int, pad_id: int) -> dict[str, float]:
        timed.append((batch_size, [list(row.ids) for row in rows]))
        return dict.fromkeys(models, 1.0)

    monkeypatch.setattr("bertcli.folders.onnx_folder.rows_per_second", speeds)
    saved_model(tmp_path / "model")
    (tmp_path / "sample.txt").write_text("the cat\na dog sat\nit was dark\n")
    options = ["--encoder", "--int8", "--sample", tmp_path / "sample.txt"]
    exported(tmp_path / "model", tmp_path / "out", *options)
    assert [size for size, _ in timed] == [1, 32]
    for _, rows in timed:
        assert len(rows) == 32
        assert rows[:29] == rows[3:]


@pytest.mark.parametrize("kind", ["pretrain", "finetune"])
def test_without_a_sample_the_texts_are_of_the_run_that_made_the_model(tmp_path: Path, kind: str, capsys):
    texts = [f"O gato {number} dormiu na casa." for number in range(40)]
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *(f"{each},a" for each in texts)]))
    (tmp_path / "corpus.txt").write_text("\n\n".join(texts))
    config: dict[str, Any] = small_config(tmp_path / "corpus.txt", tmp_path / "run")
    if kind == "finetune":
        columns = {"text": "text", "label": "label"}
        task = {"type": "classification", "train": str(tmp_path / "train.csv"), **columns}
        config = {"model": "m", "output_dir": str(tmp_path / "run"), "task": task}
    else:
        prepare_store(recipe(config), lambda line: None, processes=0)
    (tmp_path / "run" / "model").mkdir(parents=True)
    write_config(tmp_path / "run" / "config.yaml", config)
    rows = read_sample(None, None, None, tmp_path / "run" / "model")
    read = [row.texts[0] for row in rows if isinstance(row, TextExample)]
    spelled = [text.removesuffix(".") for text in texts]
    assert read
    assert {each.rstrip(" .") for each in read} <= {*spelled, *map(str.lower, spelled)}
    assert f"int8 is compared on text of {tmp_path / 'run'}" in capsys.readouterr().err
