"""What a vocabulary cannot read is avoided by `init`, said by each command, and refused where it is much."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from bertcli.folders.model_folder import save_model_folder
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from tests.advice.init.files import FIT
from tests.folders.folders import random_model, tiny_tokenizer
from tests.small_runs import small_config, write_config
from tests.tokenizer.test_scripts import TEXTS

_random = random.Random(3)
LANGUAGES = ("en", "de", "el", "tr", "vi", "ru", "fa", "ar", "hi", "si", "zh", "ja", "ko")
UNBROKEN = {
    "thai without blanks": TEXTS["th"].replace(" ", "") * 6,
    "khmer": TEXTS["km"],
    "dna": "".join(_random.choices("ACGT", k=150)),
    "proteins": "".join(_random.choices("ACDEFGHIKLMNPQRSTVWY", k=180)),
    "code": TEXTS["code"],
    "logs": TEXTS["logs"],
    "base64": base64.b64encode(_random.randbytes(400)).decode(),
}
WORDPIECES = {*LANGUAGES, "khmer", "code", "logs", "base64"}


@pytest.mark.parametrize("name", [*LANGUAGES, *UNBROKEN])
def test_init_chooses_a_vocabulary_that_reads_the_text(
    run_bertcli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.start_seconds", lambda module: 1.0)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.fit_pretraining", lambda *given, **named: FIT)
    line = (TEXTS | UNBROKEN)[name]
    text = "\n\n".join(f"{line}\n{line} {number}" for number in range(1 + 6000 // len(line.encode())))
    Path("text.txt").write_text(text, encoding="utf-8")
    code, _, err = run_bertcli("init", "text.txt", "--for", "pretrain", "--family", "bert")
    assert (code, "vocabulary: byte-bpe; " in err) == (0, name not in WORDPIECES), err
    code, out, err = run_bertcli("prepare", "bertcli.yaml", "--json")
    assert (code, json.loads(out)["unk_rate"] < 0.01, "unknown" in err) == (0, True, False), err
    code, out, err = run_bertcli("show-batch", "bertcli.yaml", "--stats", "--batches", "2", "--json")
    assert (code, json.loads(out)["unk_rate"] < 0.01) == (0, True), err


def config_of(folder: Path, russian: int, **sections: Any) -> Path:
    """A config whose text has this many Russian lines among 50; its vocabulary is one of English."""
    if not (folder / "english").exists():
        train_tokenizer([TEXTS["en"]], 300).save(folder / "english")
    lines = [f"{TEXTS['ru'] if number < russian else TEXTS['en']} {number}" for number in range(50)]
    _random.shuffle(lines)
    (folder / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    keys = {"tokenizer": {"path": str(folder / "english")}} | sections
    config = small_config(folder / "text.txt", folder / "run", data={"objective": "mlm"})
    return write_config(folder / "c.yaml", config | keys)


def test_a_given_vocabulary_is_warned_of_from_a_hundredth(run_bertcli, tmp_path: Path) -> None:
    code, out, err = run_bertcli("prepare", config_of(tmp_path, russian=10), "--json")
    assert (code, 0.01 < json.loads(out)["unk_rate"] < 0.2) == (0, True), err
    assert "of the tokens are unknown: the vocabulary lacks their characters" in err
    code, out, err = run_bertcli("show-batch", tmp_path / "c.yaml", "-n", "1")
    assert (code, "[UNK]" in out.partition("as read: ")[2].partition("\n")[0]) == (0, True), err
    assert (
        f"unknown:    {json.loads(run_bertcli('prepare', tmp_path / 'c.yaml', '--json')[1])['unk_rate']:.2%}"
        in out
    )
    code, out, err = run_bertcli("check-data", tmp_path / "c.yaml")
    assert (code, "of the tokens are unknown" in out) == (0, True), out
    assert "[UNK]" in out.partition("as read")[2].partition("\n")[0], out


def test_a_given_vocabulary_is_refused_from_a_fifth_and_the_remedy_works(run_bertcli, tmp_path: Path) -> None:
    config = config_of(tmp_path, russian=45)
    for command in ("prepare", "pretrain"):
        code, _, err = run_bertcli(command, config)
        assert code == 2, err
        assert "leave tokenizer.path out, and set tokenizer.kind: byte-bpe" in err
        assert not (tmp_path / "store").exists()
    assert run_bertcli("check-data", config)[0] == 1
    config_of(tmp_path, russian=45, tokenizer={"kind": "byte-bpe", "vocab_size": 400})
    code, out, err = run_bertcli("prepare", config, "--json")
    assert (code, json.loads(out)["unk_rate"]) == (0, 0.0), err


@pytest.mark.parametrize("key", ["tokenizer.path", "model.init_from"])
@pytest.mark.parametrize("name", ["thai without blanks", "dna"])
def test_words_too_long_for_a_given_vocabulary_are_refused_and_the_remedy_works(
    run_bertcli, tmp_path: Path, name: str, key: str
) -> None:
    """Its characters are known, its words are longer than WordPiece reads; the remedy is taken literally."""
    line = UNBROKEN[name]
    (tmp_path / "text.txt").write_text("\n\n".join(f"{line} {number}" for number in range(50)))
    given = tmp_path / "given"
    train_tokenizer([" ".join(line)], 300).save(given)
    if key == "model.init_from":
        tokenizer = Tokenizer.load(given)
        save_model_folder(given, random_model(vocab_size=tokenizer.vocab_size), tokenizer, None, 16)
    config = small_config(tmp_path / "text.txt", tmp_path / "run", data={"objective": "mlm"})
    section, last = key.split(".")
    config["tokenizer"], config[section] = {}, {last: str(given)}
    config["data"]["max_length"] = 16
    path = write_config(tmp_path / "c.yaml", config)
    for command in ("prepare", "pretrain"):
        code, _, err = run_bertcli(command, path)
        assert (code, "words are too long for WordPiece (over 100 characters)" in err) == (2, True), err
        assert f"leave {key} out, and set tokenizer.kind: byte-bpe" in err
    del config[section][last]
    config["tokenizer"]["kind"] = "byte-bpe"
    code, out, err = run_bertcli("prepare", write_config(path, config), "--json")
    assert (code, json.loads(out)["unk_rate"]) == (0, 0.0), err
    code, _, err = run_bertcli("pretrain", path, "--set", "training.steps=1", "--set", "model.preset=tiny")
    assert code == 0, err


def test_a_store_of_unknown_words_that_exists_is_refused(
    run_bertcli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions have built it."""
    config = config_of(tmp_path, russian=45)
    with monkeypatch.context() as patch:
        patch.setattr("bertcli.corpus.finish.MOST_UNKNOWN", 1.0)
        assert run_bertcli("prepare", config)[0] == 0
    code, _, err = run_bertcli("pretrain", config)
    assert (code, "build it again then: bertcli prepare CONFIG --overwrite" in err) == (2, True), err
    config_of(tmp_path, russian=45, tokenizer={"kind": "byte-bpe", "vocab_size": 400})
    assert run_bertcli("prepare", config, "--overwrite")[0] == 0


def test_evaluate_says_what_no_score_counts(run_bertcli, tmp_path: Path) -> None:
    save_model_folder(tmp_path / "model", random_model(), tiny_tokenizer(), None, 16)
    line = "the cat sat on the mat . the dog ran in the dark ."
    given = ("evaluate", tmp_path / "model", "--corpus", tmp_path / "text.txt", "--json", "--language", "en")
    (tmp_path / "text.txt").write_text(f"{line}\n\n" * 9 + f"{TEXTS['ru']}\n\n{line} {TEXTS['ru']}\n")
    code, out, err = run_bertcli(*given)
    assert (code, 0.01 < json.loads(out)["unk_rate"] < 0.5) == (0, True), err
    assert "[UNK]" in err.partition("as read: ")[2].partition("\n")[0], err
    assert "of the tokens are unknown" in err
    (tmp_path / "text.txt").write_text(f"{TEXTS['ru']}\n\n" * 9)
    code, _, err = run_bertcli(*given)
    assert (code, "100.0% of the tokens are unknown" in err) == (2, True), err
