"""What a run that went on gained on its own text, and what it lost on general text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError
from bertcli.training.gain import Gain
from bertcli.training.pretraining import pretrain
from tests.small_runs import small_config, write_corpus

OTHER = "\n\n".join(f"The machine number {i} stood still. Nobody moved it. It was cold." for i in range(300))


def go(config: dict) -> None:
    pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    text = write_corpus(folder / "corpus.txt")
    go(small_config(text, folder / "run", training={"steps": 30, "learning_rate": 5e-3}))
    return folder


def gained(lines: str, text: str) -> tuple[float, float]:
    found = re.search(rf"{text}.*: ([\d.]+) -> ([\d.]+) nats a word", lines)
    assert found, lines
    return float(found[1]), float(found[2])


def test_a_run_that_goes_on_says_what_it_gained_and_forgot(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "domain.txt"
    text.write_text(OTHER)
    config = small_config(
        text, tmp_path / "run", training={"steps": 30, "learning_rate": 5e-3}, evaluation={"batches": 8}
    )
    config["corpus"]["general"] = [str(first / "corpus.txt")]
    config |= {"model": {"init_from": str(first / "run")}, "tokenizer": {}}
    capsys.readouterr()
    go(config)
    lines = capsys.readouterr().err
    own, general = gained(lines, "held-out text"), gained(lines, "general text")
    assert own[0] - own[1] > 1
    assert own[0] - own[1] > general[0] - general[1]
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "general text (" in card

    config |= {"output_dir": str(tmp_path / "again"), "model": {"init_from": str(tmp_path / "run")}}
    config["corpus"]["store"] = str(tmp_path / "run" / "store")
    config["training"]["steps"] = 1
    config["training"]["learning_rate"] = 1e-9
    go(config)
    before, after = gained(capsys.readouterr().err, "held-out text")
    assert before == pytest.approx(own[1], abs=2e-3)  # where the run before ended
    assert after == pytest.approx(before, abs=2e-3)


def test_general_text_is_measured_without_held_out_text(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small_config(first / "corpus.txt", tmp_path / "run", training={"steps": 1})
    config["corpus"] |= {"heldout_fraction": 0, "general": [str(first / "corpus.txt")]}
    config["corpus"]["store"] = str(tmp_path / "store")
    config |= {"model": {"init_from": str(first / "run")}, "tokenizer": {}}
    go(config)
    lines = capsys.readouterr().err
    gained(lines, "general text")
    assert "held-out text" not in lines


def test_general_text_that_is_not_there_is_an_error(first: Path, tmp_path: Path) -> None:
    config = small_config(first / "corpus.txt", tmp_path / "run", training={"steps": 1})
    config["corpus"]["general"] = [str(tmp_path / "nowhere.txt")]
    config |= {"model": {"init_from": str(first / "run")}, "tokenizer": {}}
    with pytest.raises(UserError, match=r"nowhere.txt"):
        go(config)
    assert not (tmp_path / "run" / "config.yaml").exists()  # found before the first step


def test_general_text_without_text_costs_nobody_the_model(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    config = small_config(first / "corpus.txt", tmp_path / "run", training={"steps": 1})
    config["corpus"] |= {"general": [str(tmp_path / "empty.txt")], "store": str(tmp_path / "store")}
    config |= {"model": {"init_from": str(first / "run")}, "tokenizer": {}}
    go(config)
    assert "forgotten is not measured: " in capsys.readouterr().err
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()


def test_a_sample_of_a_large_text_is_short_and_always_the_same(tmp_path: Path) -> None:
    from bertcli.config.corpus import CorpusConfig
    from bertcli.training import gain

    path = tmp_path / "large.txt"
    path.write_text("\n\n".join(f"This is document {i}. " + "It goes on. " * 3000 for i in range(60)))
    taken = gain._documents([str(path)], CorpusConfig(files=[str(path)]))
    assert gain.GENERAL_BYTES <= sum(map(len, taken)) < gain.GENERAL_BYTES + len(taken[0]) + 10
    assert taken == gain._documents([str(path)], CorpusConfig(files=[str(path)]))
    numbers = [int(text.split()[3].strip(".")) for text in taken]
    assert numbers != sorted(numbers)  # from all over the text


def test_a_new_model_has_nothing_to_forget(first: Path, tmp_path: Path) -> None:
    config = small_config(first / "corpus.txt", tmp_path / "run")
    config["corpus"]["general"] = ["classics"]
    with pytest.raises(UserError, match=r"corpus.general needs model.init_from"):
        check_config(PretrainConfig, config, "the test")


def test_a_gain_is_one_line() -> None:
    assert str(Gain("held-out text", 9.0, 8.5)) == "held-out text: 9.000 -> 8.500 nats a word, 0.500 better"
    assert str(Gain("general text", 9.0, 9.5)) == "general text: 9.000 -> 9.500 nats a word, 0.500 worse"
    assert "no MLM head" in str(Gain("held-out text", None, 9.0))
