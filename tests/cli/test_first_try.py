"""The command that a run ends with works as it is printed, on text of the user's own."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.finetunes import spam_config, write_model
from tests.small_runs import run_cli, small_config, without_waiting, write_config

Bertcli = Callable[..., tuple[int, str, str]]
NASTY = '-5°: it\'s "$(touch owned)" `x`!\x1b[31m 100%\nand more of the same words, until it is much too long'
TASKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "classification": ({"text": NASTY, "label": "a"}, {"text": "text", "label": "label"}),
    "regression": (
        {"a": NASTY, "b": "some other text", "score": 1.5},
        {"text": ["a", "b"], "label": "score"},
    ),
    "multiple-choice": (
        {"text": NASTY, "choices": ["late", "it's dark", "-"], "label": 1},
        {"text": "text", "choices": "choices", "label": "label"},
    ),
    "token-classification": (
        {"text": ["it's", "a", "house"], "label": ["O", "O", "B-X"]},
        {"label": "label"},
    ),
}
"""A labeled row, and the keys of its task."""


def tried(err: str) -> list[str]:
    """The words of the last line's command, as a shell reads them."""
    commands = re.findall(r"^the model is in .*?; try: (.*)$", err, re.MULTILINE)
    assert len(commands) == 1, err
    program, *arguments = shlex.split(commands[0])
    assert program == "bertcli"
    return arguments


def squad(folder: Path) -> dict[str, Any]:
    context = (
        f"{'It was late. ' * 40}The house was built in Paris, by the café's owner. {'It was dark. ' * 40}"
    )
    answers = [{"text": "Paris", "answer_start": context.index("Paris")}]
    asked = [{"id": str(n), "question": "Where was it -\tbuilt?", "answers": answers} for n in range(8)]
    value = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}
    (folder / "rows.json").write_text(json.dumps(value))
    return {"train": str(folder / "rows.json"), "format": "squad"}


@pytest.mark.parametrize("kind", [*TASKS, "question-answering"])
def test_a_finetuned_model_is_tried_on_a_row_of_its_own_data(
    run_bertcli: Bertcli, tmp_path: Path, kind: str
) -> None:
    write_model(tmp_path / "bert")
    if kind == "question-answering":
        task = squad(tmp_path)
    else:
        row, keys = TASKS[kind]
        rows = [row, row | {"label": "b"}] if kind == "classification" else [row]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows * 4))
        task = {"train": str(tmp_path / "rows.jsonl"), **keys}
    value = spam_config(tmp_path, training={"epochs": 1})
    value["task"] = {"type": kind, "max_length": 64, **task}
    code, _, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", value))
    assert code == 0, err
    command = tried(err)
    assert command[:2] == ["predict", str(tmp_path / "run" / "model")]
    code, out, err = run_bertcli(*command)
    assert (code, err) == (0, ""), err
    texts = command[2:]
    assert all(len(text) <= 160 for text in texts)
    if kind == "question-answering":
        assert texts[0] == "Where was it - built?"
        assert "built in Paris" in texts[1]
    elif kind != "token-classification":
        assert texts[0] == "--"
        assert texts[1] == '-5°: it\'s "$(touch owned)" `x`! [31m 100% and more of the'
    assert out


def test_the_command_survives_a_real_shell(run_bertcli: Bertcli, tmp_path: Path) -> None:
    write_model(tmp_path / "bert")
    rows = [json.dumps({"text": NASTY, "label": label}) + "\n" for label in "abab"]
    (tmp_path / "train.jsonl").write_text("".join(rows))
    value = spam_config(tmp_path, output_dir=str(tmp_path / "my run"), training={"epochs": 1})
    value["task"] = {"type": "classification", "train": str(tmp_path / "train.jsonl"), "max_length": 64}
    value["task"] |= {"text": "text", "label": "label"}
    _, _, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", value))
    program = f'bertcli() {{ {sys.executable} -m bertcli "$@"; }}; cd {tmp_path}; '
    command = err.rpartition("; try: ")[2]
    done = subprocess.run(["bash", "-c", program + command], capture_output=True, text=True, check=False)
    assert (done.returncode, without_waiting(done.stderr)) == (0, "")
    assert done.stdout.endswith('-5°: it\'s "$(touch owned)" `x`! [31m 100% and more of the\n')
    assert not (tmp_path / "owned").exists()


def chinese(path: Path) -> Path:
    drawn = random.Random(1)
    letters = "我们今天在北京的公园里看见了很多人他说气好学生老师书"
    lines = ["".join(drawn.choices(letters, k=drawn.randint(6, 25))) + "。" for _ in range(320)]
    path.write_text("\n\n".join("\n".join(lines[start : start + 8]) for start in range(0, 320, 8)))
    return path


@pytest.mark.parametrize(
    ("family", "mask", "tokenizer"),
    [
        ("bert", "[MASK]", {"vocab_size": 200}),
        ("roberta", "<mask>", {"vocab_size": 500, "kind": "byte-bpe", "lowercase": False}),
    ],
)
def test_a_model_of_a_script_without_blanks_is_tried_on_its_own_text(
    run_bertcli: Bertcli, tmp_path: Path, family: str, mask: str, tokenizer: dict[str, Any]
) -> None:
    value = small_config(
        chinese(tmp_path / "text.txt"),
        tmp_path / "run",
        corpus={"language": "zh"},
        tokenizer=tokenizer,
        data={"objective": "mlm"},
        model={"family": family},
        training={"steps": 1},
    )
    code, _, err = run_bertcli("pretrain", write_config(tmp_path / "config.yaml", value))
    assert code == 0, err
    verb, model, text = tried(err)
    assert (verb, model) == ("predict-mask", str(tmp_path / "run" / "model"))
    assert re.fullmatch(rf"[\u4e00-\u9fff]{{2,}}{re.escape(mask)}[\u4e00-\u9fff。]+", text)
    assert run_bertcli(verb, model, text)[0] == 0


def test_a_new_model_is_tried_on_a_held_out_sentence_with_one_word_masked(
    run_bertcli: Bertcli, corpus: Path, tmp_path: Path
) -> None:
    value = small_config(corpus, tmp_path / "run", training={"steps": 1})
    _, _, err = run_bertcli("pretrain", write_config(tmp_path / "config.yaml", value))
    verb, model, text = tried(err)
    assert re.fullmatch(r"[^\[\]]+ \[MASK\][^\[\]]*", text)
    code, out, _ = run_bertcli(verb, model, text, "--json")
    assert (code, len(json.loads(out)["masks"])) == (0, 1)
    words = re.findall(r"[a-z]{2,}", text)
    assert set(words) <= set(re.findall(r"[a-z]+", corpus.read_text().lower()))


def test_of_replaced_words_the_generator_is_tried(corpus: Path, tmp_path: Path) -> None:
    value = small_config(corpus, tmp_path / "run", training={"steps": 1}, model={"family": "electra"})
    value["data"] |= {"objective": "rtd", "mask_split": [0.85, 0.0, 0.15]}
    value["corpus"]["store"] = str(tmp_path / "store")
    done = run_cli("pretrain", write_config(tmp_path / "config.yaml", value))
    assert done.returncode == 0, done.stderr
    verb, model, text = tried(done.stderr)
    assert model == str(tmp_path / "run" / "model" / "generator")
    assert run_cli(verb, model, text).returncode == 0
