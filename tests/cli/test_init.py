"""`bertcli init` for texts: the config that it writes is one that runs; what gives no config is said."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import load_either_config
from bertcli.config.schema import PretrainConfig
from tests.advice.init.files import comments, messages, write_csv
from tests.finetunes import write_model

pytestmark = pytest.mark.usefixtures("init_here")


@pytest.fixture
def text(corpus: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(corpus, tmp_path / "stories.txt"))


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
    short = ("--set", "training.steps=2", "--set", "evaluation.batches=1")
    code, out, err = run_bertcli("pretrain", "bertcli.yaml", *short)
    assert (code, out) == (0, "runs/stories/model\n"), err


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


def test_a_table_that_may_be_plain_text_is_a_corpus_if_asked(run_bertcli, tmp_path: Path) -> None:
    write_csv(tmp_path / "a.txt", [(text, "and so on") for _, text in messages(300)])
    assert run_bertcli("init", "a.txt", "--for", "pretrain", "--minutes", "0.1")[0] == 0
    assert isinstance(load_either_config(tmp_path / "bertcli.yaml"), PretrainConfig)


def test_a_family_and_a_gpu_of_another_machine(run_bertcli, text: Path, tmp_path: Path) -> None:
    options = ("--family", "roberta", "--device", "h200", "--minutes", "60")
    code, _, err = run_bertcli("init", "stories.txt", *options)
    assert code == 0, err
    assert "calculated: " in err
    assert "measured: start" in err  # and the store, on this machine
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, PretrainConfig)
    assert config.model.family == "roberta"
    said = comments(tmp_path / "bertcli.yaml")
    assert "on h200 in bf16: calculated, not measured." in said.splitlines()[0]
    assert "given with --family" in said
    assert "chosen: roberta " in err
    assert "note: h200: a compiled step of 256 rows" in err


def test_going_on_from_a_model(run_bertcli, text: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "bert")
    code, _, err = run_bertcli("init", "stories.txt", "--minutes", "0.1", "--model", "bert")
    assert code == 0, err
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, PretrainConfig)
    assert config.model.init_from == "bert"
    assert config.data.max_length == 64
    assert run_bertcli("check-data", "bertcli.yaml")[0] == 0
    code, _, err = run_bertcli("estimate", "bertcli.yaml", "--set", "data.max_length=100")
    assert (code, "data.max_length (100) is longer than the positions of the model" in err) == (2, True)
    Path("one.txt").write_text("A text of one document. It has sentences.\n" * 300)
    code, _, err = run_bertcli(
        "init", "one.txt", "--minutes", "0.1", "--model", "bert", "--output", "one.yaml"
    )
    assert code == 0, err
    config = load_either_config(tmp_path / "one.yaml")
    assert isinstance(config, PretrainConfig)
    assert config.data.objective == "mlm"  # this BERT would learn pairs, which the text does not give


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("x.txt", b"", (), "x.txt: is empty"),
        ("x.txt", b"\x7fELF" + bytes(99), (), "x.txt: is a program, not text"),
        ("x.txt", b"12 34\n", ("--for", "finetune"), "x.txt: is plain text, without labels"),
        ("x.txt", b"12 34\n", ("--model", "m", "--family", "bert"), "give --model or --family, not both"),
        ("x.txt", b"12 34\n", ("--device", "abacus"), "--device abacus: is unknown; give one of b200, "),
        ("x.csv", b"text,label\nab,0\n", ("--family", "bert"), "--family: is for pretraining, and these"),
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
