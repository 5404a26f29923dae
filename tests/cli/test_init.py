from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.init.fit_pretraining import StepSpeed, step_speed
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_either_config, parse_yaml
from bertcli.config.schema import PretrainConfig
from tests.advice.init.files import messages, write_csv, write_jsonl
from tests.finetunes import write_model


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short measurements; and a folder of its own, in which `runs/` and `bertcli.yaml` are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bertcli.advice.bench.timing.SIZES", {"cpu": (64,)})
    short = partial(step_speed, seconds=0.2)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.step_speed", short)
    monkeypatch.setattr("bertcli.advice.init.finetuning.step_speed", lambda plan, seconds: short(plan))
    for name in ("pretraining", "finetuning"):
        monkeypatch.setattr(f"bertcli.advice.init.{name}.start_seconds", lambda module: 1.0)


@pytest.fixture
def text(corpus: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(corpus, tmp_path / "stories.txt"))


def spam(path: Path, number: int = 80) -> Path:
    return write_csv(path, [("label", "message"), *messages(number)], "\t" if path.suffix == ".tsv" else ",")


def comments(path: Path) -> str:
    return "\n".join(line.partition("#")[2] for line in path.read_text(encoding="utf-8").splitlines())


def test_a_corpus_gets_a_config_that_passes_check_data_and_runs(
    run_bertcli, text: Path, tmp_path: Path
) -> None:
    code, out, err = run_bertcli("init", "stories.txt", "--minutes", "0.2")
    assert (code, out) == (0, "bertcli.yaml\n"), err
    assert err.endswith("written: bertcli.yaml; next: bertcli pretrain bertcli.yaml\n")
    assert "found: 1 file, 0.3 MB of text, 40 documents, " in err
    assert "predicted: " in err
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, PretrainConfig)
    assert (config.model.preset, config.corpus.language, config.output_dir) == ("tiny", "en", "runs/stories")
    assert "seconds" in comments(tmp_path / "bertcli.yaml").splitlines()[0]
    assert " lines is in it" in comments(tmp_path / "bertcli.yaml")
    assert run_bertcli("check-data", "bertcli.yaml")[0] == 0
    short = ("--set", "training.steps=2", "--set", "evaluation.batches=1", "--set", "data.short_steps=0")
    code, out, err = run_bertcli("pretrain", "bertcli.yaml", *short)
    assert (code, out) == (0, "runs/stories/model\n"), err


def test_a_table_gets_a_config_that_passes_check_data_and_runs(run_bertcli, tmp_path: Path) -> None:
    spam(tmp_path / "spam.tsv")
    write_model(tmp_path / "bert")
    code, out, err = run_bertcli("init", "spam.tsv", "--model", "bert", "--output", "my spam.yaml")
    assert (code, out) == (0, "my spam.yaml\n"), err
    assert "  train: 64 rows; ham 32 (50.0%), spam 32 (50.0%)" in err
    assert "note: the run ends sooner; of so many rows init takes no more epochs" in err
    assert err.endswith("written: my spam.yaml; next: bertcli finetune 'my spam.yaml'\n")
    config = load_either_config(tmp_path / "my spam.yaml")
    assert isinstance(config, FinetuneConfig)
    assert (config.model, config.task.label, config.training.epochs) == ("bert", "label", 20)
    assert run_bertcli("check-data", "my spam.yaml")[0] == 0
    code, out, err = run_bertcli("finetune", "my spam.yaml", "--set", "training.epochs=1")
    assert (code, out) == (0, "runs/spam/model\n"), err


def test_without_a_model_at_hand_no_time_is_told(run_bertcli, tmp_path: Path) -> None:
    spam(tmp_path / "spam.csv")
    code, _, err = run_bertcli("init", "spam.csv")
    assert code == 0
    assert "the time was not measured" in err
    assert "needs a network" in comments(tmp_path / "bertcli.yaml")
    value = parse_yaml((tmp_path / "bertcli.yaml").read_text(), "")
    assert value["model"] == "google-bert/bert-base-uncased"


def test_what_is_left_out_of_labeled_files_is_said_with_number_and_reason(
    run_bertcli, tmp_path: Path
) -> None:
    rows = [("label", "message"), *messages(40)]
    write_csv(tmp_path / "train.csv", [*rows, ("ham", ""), ("ham", " "), ("ham", "one", "too many")])
    write_csv(tmp_path / "dev.csv", [*rows[:9], ("ham", "")])
    write_csv(tmp_path / "test.csv", rows)
    code, _, err = run_bertcli("init", "train.csv")
    assert code == 0, err
    assert "train.csv: left out 3 of 43 rows, which cannot be used:\n  train.csv, line 42: the text" in err
    assert "  train.csv, line 44: 3 fields, not 2" in err
    assert "dev.csv: left out 1 of 9 rows, which cannot be used:\n  dev.csv, line 10: the text is" in err
    assert "test.csv is left for bertcli evaluate\n" in err
    assert "3 of 43 rows, which cannot be used: train.csv, line 42" in " ".join(
        comments(tmp_path / "bertcli.yaml").split()
    )
    write_csv(tmp_path / "train.csv", rows)  # rows of the other file alone are bad
    assert run_bertcli("init", "train.csv", "--output", "b.yaml")[0] == 0
    assert parse_yaml((tmp_path / "b.yaml").read_text(), "")["task"]["skip_bad"] is True
    write_csv(tmp_path / "dev.csv", [("label", "words"), *messages(40)])
    _, _, err = run_bertcli("init", "train.csv", "--output", "c.yaml")
    assert "left out: dev.csv cannot be used: task.text: no column 'message'" in err


def test_an_existing_file_is_left_as_it_is(run_bertcli, text: Path, tmp_path: Path) -> None:
    (tmp_path / "bertcli.yaml").write_text("mine")
    code, _, err = run_bertcli("init", "stories.txt")
    assert (code, err) == (
        2,
        "error: bertcli.yaml: exists already, and is left as it is; name another file with --output\n",
    )
    assert (tmp_path / "bertcli.yaml").read_text() == "mine"


def test_the_folder_of_the_config_must_exist(run_bertcli, text: Path) -> None:
    code, _, err = run_bertcli("init", "stories.txt", "--output", "no/mine.yaml")
    assert code == 2
    assert "no/mine.yaml: there is no folder no in " in err


def test_the_folder_with_the_config_gives_the_texts_alone(run_bertcli, text: Path, tmp_path: Path) -> None:
    assert run_bertcli("init", ".", "--minutes", "0.1")[0] == 0
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, PretrainConfig)
    assert config.corpus.files == ["**/*.txt"]


def test_a_run_that_exists_keeps_its_folder(run_bertcli, tmp_path: Path) -> None:
    (tmp_path / "runs" / "spam").mkdir(parents=True)
    spam(tmp_path / "spam.csv")
    assert run_bertcli("init", "spam.csv")[0] == 0
    assert load_either_config(tmp_path / "bertcli.yaml").output_dir == "runs/spam-2"


def json_lines(path: Path) -> Path:
    return write_jsonl(path, [{"text": f"{text} It rains.", "label": label} for label, text in messages(200)])


def test_of_a_part_of_the_files_as_much_is_held_out_as_evaluation_needs(
    run_bertcli, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.advice.init.pretraining._MOST_PREPARING", 0.0)
    lines = [line for line in corpus.read_text(encoding="utf-8").split("\n") if ". " in line]
    documents = ["\n".join(lines[3 * n : 3 * n + 3]) for n in range(len(lines) // 3)]
    (tmp_path / "texts").mkdir()
    for n in range(6):
        own = documents[10 * n : 10 * n + 10]
        if n in (1, 4):  # those that will be taken: equal documents are held out together, or not at all
            own = own[:1] * 40
        (tmp_path / "texts" / f"{n}.txt").write_text("\n\n".join(own), encoding="utf-8")
    code, _, err = run_bertcli("init", "texts", "--minutes", "0.1")
    assert code == 0, err
    assert "of the text fits in the time; for all of it give more --minutes" in err
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, PretrainConfig)
    assert config.corpus.files == ["texts/1.txt", "texts/4.txt"]
    code, _, err = run_bertcli("prepare", "bertcli.yaml")
    assert code == 0, err


def test_json_lines_are_taken_by_their_labels_or_as_said(run_bertcli, tmp_path: Path) -> None:
    json_lines(tmp_path / "a.jsonl")
    _, _, err = run_bertcli("init", "a.jsonl")
    assert "taken as labeled rows to fine-tune on; for a corpus to pretrain on: --for pretrain" in err
    assert isinstance(load_either_config(tmp_path / "bertcli.yaml"), FinetuneConfig)
    options = ("--for", "pretrain", "--output", "b.yaml", "--minutes", "0.1")
    assert run_bertcli("init", "a.jsonl", *options)[0] == 0
    config = load_either_config(tmp_path / "b.yaml")
    assert isinstance(config, PretrainConfig)
    assert (config.corpus.format, config.corpus.text_key) == ("jsonl", "text")


@pytest.mark.parametrize("is_texts", [True, False])
def test_a_json_list_is_a_corpus(run_bertcli, text: Path, tmp_path: Path, is_texts: bool) -> None:
    documents = text.read_text(encoding="utf-8").split("\n\n")[:12]
    rows = documents if is_texts else [{"id": n, "body": each} for n, each in enumerate(documents)]
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=1))
    code, _, err = run_bertcli("init", "a.json", "--minutes", "0.1")
    assert code == 0, err
    assert "found: 1 file, 0.1 MB of text, 12 documents, " in err
    code, _, err = run_bertcli("check-data", "bertcli.yaml")
    assert code == 0, err


def _json_list(path: Path) -> None:
    path.write_text(json.dumps([{"text": text, "label": label} for label, text in messages(80)], indent=1))


def _fasttext(path: Path) -> None:
    path.write_text("".join(f"__label__{label} {text}\n" for label, text in messages(80)))


def _trec(path: Path) -> None:
    path.write_text("".join(f"{label.upper()}:x {text}\n" for label, text in messages(80)))


def _separated(separator: str) -> Callable[[Path], object]:
    return lambda path: write_csv(path, [("kind", "words, or more"), *messages(80)], separator)


@pytest.mark.parametrize(
    ("name", "write", "task"),
    [
        ("a.json", _json_list, {"text": "text", "label": "label", "format": "auto"}),
        ("a.txt", _fasttext, {"text": "text", "label": "label", "format": "fasttext"}),
        ("a.label", _trec, {"text": "text", "label": "label", "format": "trec"}),
        ("a.csv", _separated(";"), {"text": "words, or more", "label": "kind", "separator": ";"}),
        ("a.csv", _separated("|"), {"text": "words, or more", "label": "kind", "separator": "|"}),
        ("a.txt", _separated("|"), {"format": "csv", "label": "kind", "separator": "|"}),
    ],
)
def test_layouts_of_labeled_files_pass_check_data(
    run_bertcli, tmp_path: Path, name: str, write: Any, task: dict[str, str]
) -> None:
    write(tmp_path / name)
    write_model(tmp_path / "bert")
    code, _, err = run_bertcli("init", name, "--model", "bert")
    assert code == 0, err
    assert ("if it is plain text: --for pretrain" in err) == (name in ("a.txt", "a.label"))
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, FinetuneConfig)
    assert {key: getattr(config.task, key) for key in task} == task
    code, _, err = run_bertcli("check-data", "bertcli.yaml")
    assert code == 0, err


def test_a_table_that_may_be_plain_text_is_a_corpus_if_asked(run_bertcli, tmp_path: Path) -> None:
    write_csv(tmp_path / "a.txt", [(text, "and so on") for _, text in messages(300)])
    assert run_bertcli("init", "a.txt", "--for", "pretrain", "--minutes", "0.1")[0] == 0
    assert isinstance(load_either_config(tmp_path / "bertcli.yaml"), PretrainConfig)


def test_less_than_an_epoch_is_said_with_the_time_of_one(run_bertcli, tmp_path: Path, monkeypatch) -> None:
    spam(tmp_path / "spam.csv", 600)
    write_model(tmp_path / "bert")
    speed = StepSpeed(1.0, 0.0, 32 * 16, device="cpu", precision="fp32")
    monkeypatch.setattr("bertcli.advice.init.finetuning.step_speed", lambda plan, seconds: speed)
    code, _, err = run_bertcli("init", "spam.csv", "--model", "bert", "--minutes", "0.25")
    assert code == 0, err
    assert "left aside" not in err
    said = "of the rows are read, once; a run that reads all of them takes "
    assert said in err
    assert said in " ".join(comments(tmp_path / "bertcli.yaml").split())
    assert "--minutes 1)" in err


@pytest.mark.parametrize(("epochs", "said"), [(1.0, "for 1 epoch, of"), (2.0, "for 2 epochs, of")])
def test_one_epoch_is_no_plural(run_bertcli, tmp_path: Path, monkeypatch, epochs: float, said: str) -> None:
    spam(tmp_path / "spam.csv")
    write_model(tmp_path / "bert")
    monkeypatch.setattr("bertcli.advice.init.finetuning._descending", lambda most: [epochs])
    code, _, err = run_bertcli("init", "spam.csv", "--model", "bert")
    assert (code, said in err) == (0, True), err


def test_going_on_from_a_model(run_bertcli, text: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "bert")
    code, _, err = run_bertcli("init", "stories.txt", "--minutes", "0.1", "--model", "bert")
    assert code == 0, err
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, PretrainConfig)
    assert config.model.init_from == "bert"
    assert config.data.max_length == 64
    assert run_bertcli("check-data", "bertcli.yaml")[0] == 0


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("x.txt", b"", (), "x.txt: is empty"),
        ("x.txt", b"\x7fELF" + bytes(99), (), "x.txt: is a program, not text"),
        ("x.txt", b"12 34\n", ("--for", "finetune"), "x.txt: is plain text, without labels"),
        ("x.json", b'{\n "a": 1\n}\n', (), "x.json: is JSON of another form than those that are read"),
        (
            "x.csv",
            b"a,b\n1,x\n2,y\n3,z\n",
            ("--for", "pretrain"),
            "x.csv: is a table (CSV); a corpus is plain text",
        ),
        ("x.json", b'[["a", "b"]]', (), "x.json: is JSON of another form than those that are read"),
        (
            "x.json",
            b'["a", "b"]',
            ("--for", "finetune"),
            "x.json: is a list of texts in JSON, without labels",
        ),
        ("x.txt", b"A text.\n", ("--minutes", "0"), "greater than or equal to 0.1"),
        ("x.txt", b"A text. Of two sentences.\n", (), "x.txt: 26 bytes of text are too few to train on"),
        ("x.txt", b"A text. Of two sentences.\n" * 300, ("--model", "nowhere"), "nowhere: no such folder"),
    ],
)
def test_what_gives_no_config_is_one_message(
    run_bertcli, tmp_path: Path, name: str, content: bytes, options: Any, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    code, out, err = run_bertcli("init", name, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "bertcli.yaml").exists()


def test_a_missing_path(run_bertcli) -> None:
    code, _, err = run_bertcli("init", "nowhere.txt")
    assert code == 2
    assert err.startswith("error: nowhere.txt: no such file or folder in ")


def test_labels_that_cannot_be_read_are_named_and_others_that_are_not_read(
    run_bertcli, tmp_path: Path
) -> None:
    rows = [{"text": text, "label": [[0, 5, "WORD"]]} for _, text in messages(40)]
    write_jsonl(tmp_path / "spans.jsonl", rows)
    code, out, err = run_bertcli("init", "spans.jsonl")
    assert (code, out) == (2, "")
    assert "the column 'label' holds spans of characters, as doccano" in err
    assert "To pretrain on the texts alone: --for pretrain" in err
    write_jsonl(tmp_path / "kinds.jsonl", [row | {"label": {"spam": True}} for row in rows])
    _, _, err = run_bertcli("init", "kinds.jsonl")
    assert "taken as a corpus to pretrain on, without label, which may be labels; for labeled rows" in err
