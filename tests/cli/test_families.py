"""Every command with a folder of every family, as its authors publish it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers

from bertcli.families.registry import FAMILIES
from bertcli.folders.task_folder import load_task_folder
from bertcli.tasks.supervised import task_class
from bertcli.training.metrics_log import MetricsLog
from tests.families.published import FAMILY_TYPES, family_folder
from tests.finetunes import Killed, run, write_spam
from tests.small_runs import write_config

Bertcli = Callable[..., tuple[int, str, str]]
MASK = {"roberta": "<mask>", "xlm-roberta": "<mask>", "camembert": "<mask>"}
OWN_MODELS = [family for family in FAMILY_TYPES if family not in ("xlm-roberta", "camembert")]
"""The families whose models are not those of another one, RoBERTa, in all but names and tokenizer."""
CONTEXT = "The Eiffel Tower 🗼 was built in  Paris, by Gustave Eiffel's café."

MAX_LENGTH = 32


@pytest.fixture(scope="module", params=FAMILY_TYPES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def folder(family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return family_folder(family, tmp_path_factory.mktemp(family) / "model")


def config(folder: Path, output: Path, task: dict[str, Any], **training: Any) -> dict[str, Any]:
    """Of two steps."""
    return {
        "output_dir": str(output),
        "model": str(folder),
        "task": {"max_length": MAX_LENGTH, **task},
        "training": {"batch_size": 8, "epochs": 1, "learning_rate": 1e-3, "device": "cpu", **training},
    }


def rows_of(kind: str, path: Path) -> dict[str, Any]:
    """Writes labeled rows; the keys of the config's `task`."""
    if kind == "classification":
        write_spam(path / "train.tsv", rows=16)
        return {"train": str(path / "train.tsv"), "text": "message", "label": "label"}
    if kind == "regression":
        lines = [f"{number}\ta text\tanother one {number}" for number in range(16)]
        (path / "train.tsv").write_text("\n".join(["score\ta\tb", *lines]) + "\n")
        return {"train": str(path / "train.tsv"), "text": ["a", "b"], "label": "score"}
    if kind == "token-classification":
        sentence = "Anna B-PER\nlives O\nin O\nNew B-LOC\nYork I-LOC\n. O\n\n"
        (path / "train.conll").write_text(sentence * 16)
        return {"train": str(path / "train.conll")}
    if kind == "question-answering":
        start = CONTEXT.index("Paris")
        asked = {"question": "Where was it built?", "answers": [{"text": "Paris", "answer_start": start}]}
        asks = [{"id": str(number), **asked} for number in range(16)]
        squad = {"data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": asks}]}]}
        (path / "train.json").write_text(json.dumps(squad))
        return {"train": str(path / "train.json"), "format": "squad"}
    row = {"text": "it was", "choices": ["late", "a house", "dark"], "label": 1}
    (path / "train.jsonl").write_text((json.dumps(row) + "\n") * 16)
    return {"train": str(path / "train.jsonl"), "text": "text", "choices": "choices", "label": "label"}


OTHERS = ("regression", "question-answering", "multiple-choice")
INPUTS = {
    "classification": ["See you at six", "You won a prize"],
    "regression": ["a text", "another one"],
    "token-classification": ["Anna met 🗼 (Gustave) in New York."],
    "question-answering": ["Where was it built?", CONTEXT],
    "multiple-choice": ["it was", "late", "dark"],
}


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (family, kind)
        for number, family in enumerate(FAMILY_TYPES)  # a family's other heads are in tests.parity
        for kind in ("classification", "token-classification", OTHERS[number % len(OTHERS)])
    ],
    indirect=["family"],
)
def test_it_learns_a_task_and_predicts(
    run_bertcli: Bertcli, family: str, folder: Path, tmp_path: Path, kind: str
) -> None:
    path = write_config(
        tmp_path / "config.yaml", config(folder, tmp_path / "run", {"type": kind, **rows_of(kind, tmp_path)})
    )
    code, out, err = run_bertcli("finetune", path)
    if (head := task_class(kind).head or "") not in FAMILIES[family].heads:
        assert code == 2
        assert f"task.type: {kind}, for which transformers has no" in err
        return
    model = tmp_path / "run" / "model"
    assert (code, out) == (0, f"{model}\n"), err
    code, out, err = run_bertcli("predict", tmp_path / "run", *INPUTS[kind], "--json")
    assert code == 0, err
    answers = [json.loads(line) for line in out.splitlines()]
    if kind == "question-answering":
        answer = answers[0]
        assert CONTEXT[answer["start"] : answer["end"]] == answer["answer"]
    if kind == "token-classification":
        for entity in answers[0]["entities"]:
            assert INPUTS[kind][0][entity["start"] : entity["end"]] == entity["text"]
        assert len(answers[0]["tags"]) >= 8
    again, info = getattr(transformers, FAMILIES[family].classes[head]).from_pretrained(
        model, output_loading_info=True
    )
    assert not any(info.values()), info
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    ours = load_task_folder(model).tokenizer
    text = "It was late; 東京 🗼 café."
    assert tokenizer(text)["input_ids"] == list(ours.frame.row(ours.encode(text)).ids)
    assert tokenizer.mask_token == ours.mask_token
    read = again.config.max_position_embeddings - (again.config.pad_token_id + 1 if family in MASK else 0)
    has_windows = kind in ("token-classification", "question-answering")  # others cut at what is declared
    assert tokenizer.model_max_length == (read if has_windows else MAX_LENGTH)
    if kind == "classification":
        is_evaluated_estimated_and_timed(run_bertcli, path, tmp_path)


def is_evaluated_estimated_and_timed(run_bertcli: Bertcli, path: Path, folder: Path) -> None:
    measure = ("evaluate", folder / "run", "--data", folder / "train.tsv")
    bench = ("bench", "finetune", path, "--steps", "2")
    for command in (measure, ("estimate", path), bench, ("check-data", path)):
        code, out, err = run_bertcli(*command, "--json")
        assert code == 0, err
        assert json.loads(out)
        assert command != measure or json.loads(out)["loss"] > 0


@pytest.mark.parametrize("family", OWN_MODELS, indirect=True)
def test_it_goes_on_after_a_stop(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of("classification", tmp_path)
    task = {"type": "classification", **rows, "dev": rows["train"]}
    whole = config(folder, tmp_path / "whole", task, epochs=2) | {"checkpoint": {"every_steps": 1}}
    stopped = whole | {"output_dir": str(tmp_path / "stopped")}
    run(whole)
    write = MetricsLog.write

    def write_and_die(self: MetricsLog, row: dict[str, Any]) -> None:
        write(self, row)
        if (row["split"], row["step"]) == ("heldout", 2):
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(MetricsLog, "write", write_and_die)
        with pytest.raises(Killed):
            run(stopped)
    run(stopped, resume=True)
    one, other = (tmp_path / name / "model" / "model.safetensors" for name in ("whole", "stopped"))
    assert one.read_bytes() == other.read_bytes()


def test_its_masks_are_filled(run_bertcli: Bertcli, family: str, folder: Path) -> None:
    mask = MASK.get(family, "[MASK]")
    text = f"It was a {mask} and stormy night."
    code, out, err = run_bertcli("predict-mask", folder, text, "--json", "--top-k", "3")
    assert code == 0, err
    filled = json.loads(out)
    assert len(filled["masks"]) == 1
    assert "  " not in filled["filled"]
    code, other, err = run_bertcli(
        "predict-mask", folder, text.replace(mask, "[MASK]"), "--json", "--top-k", "3"
    )
    assert code == 0
    assert json.loads(other)["masks"] == filled["masks"]
    assert (f"[MASK] is read as {mask}" in err) == (mask != "[MASK]")


def test_its_words_are_measured_on_a_text(
    run_bertcli: Bertcli, folder: Path, corpus: Path, tmp_path: Path
) -> None:
    command = ("evaluate", folder, "--corpus", corpus, "--max-length", "32", "--batches", "2", "--json")
    code, out, err = run_bertcli(*command)
    assert code == 0, err
    measured = json.loads(out)
    assert measured["mlm_loss"] == pytest.approx(6.7, abs=1.5)  # ln 800 = 6.7, and few words are likely


def test_vectors_and_a_clean_folder(run_bertcli: Bertcli, family: str, folder: Path, tmp_path: Path) -> None:
    code, out, err = run_bertcli("embed", folder, "It was late.", "日本語 🗼")
    assert code == 0, err
    assert len(out.splitlines()) == 2
    code, out, err = run_bertcli("convert", folder, tmp_path / "clean")
    assert code == 0, err
    assert "largest difference 0" in out
    code, _, err = run_bertcli("embed", tmp_path / "clean", "It was late.", "日本語 🗼")
    assert code == 0, err
    if family != "bert":
        code, _, err = run_bertcli("predict-next", folder, "It was late.", "It was dark.")
        assert code == 2
        assert "bertcli predict" in err or "give one that was pretrained with it" in err


def test_a_discriminator_fills_no_masks(run_bertcli: Bertcli, tmp_path: Path) -> None:
    folder = family_folder("electra", tmp_path / "electra", kind="discriminator")
    code, _, err = run_bertcli("predict-mask", folder, "It was [MASK].")
    assert code == 2
    assert "the discriminator of an ELECTRA" in err
    assert "bertcli finetune and bertcli embed" in err
    code, _, err = run_bertcli("convert", folder, tmp_path / "clean")
    assert code == 0, err
    assert json.loads((tmp_path / "clean" / "config.json").read_text())["architectures"] == [
        "ElectraForPreTraining"
    ]


def test_a_long_row_of_modernbert_is_read(run_bertcli: Bertcli, tmp_path: Path) -> None:
    """8,192 tokens: a full matrix of each head and layer would take 268 MB."""
    folder = family_folder("modernbert", tmp_path / "long", max_position_embeddings=8192, local_attention=128)
    (tmp_path / "text.txt").write_text("late " * 9000)
    code, out, err = run_bertcli("embed", folder, "--input", tmp_path / "text.txt")
    assert code == 0, err
    assert "1 of 1 rows were longer than the model reads, and were cut" in err
    assert len(json.loads(out)["vector"]) == 24
