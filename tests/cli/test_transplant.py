"""A new vocabulary for a model of any family: known pieces keep their vectors; commands read the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from bertcli.folders.config_file import learns_anew
from bertcli.folders.model_folder import load_model_folder
from bertcli.tokenizer.transplant import find_origins
from tests.families.published import FAMILY_TYPES, family_folder
from tests.small_runs import run_cli, small_config, write_config, write_corpus
from tests.tokenizer.test_extend import MEDICINE


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n\n".join([*MEDICINE, "сердце и мир, мир и сердце"] * 5), encoding="utf-8")
    return path


def config_of(corpus: Path, folder: Path, **tokenizer: object) -> Path:
    config = {"output_dir": str(folder / "run"), "corpus": {"files": [str(corpus)]}, "tokenizer": tokenizer}
    return write_config(folder / "config.yaml", config)


@pytest.mark.parametrize("model_type", FAMILY_TYPES)
def test_the_folder_is_a_model_that_transformers_reads(tmp_path: Path, corpus: Path, model_type: str) -> None:
    source = family_folder(model_type, tmp_path / "model")
    config, out = config_of(corpus, tmp_path, vocab_size=320), tmp_path / "out"
    result = run_cli("transplant", source, config, out, "--json")
    assert result.returncode == 0, result.stderr
    assert [learns_anew(str(each)) for each in (source, out)] == [False, True]
    before, after = (load_model_folder(each, pairs=False) for each in (source, out))
    said, old, new = json.loads(result.stdout), before.tokenizer, after.tokenizer
    origins = find_origins(old, new)
    assert said == {"folder": str(out), "vocab_size": new.vocab_size, **origins.counts}
    assert said["copied"] > 30
    assert said["made_from_old_pieces"] > 5
    for table in (lambda model: model.body.embeddings.word.weight, lambda model: model.mlm_head.bias):
        old_rows, new_rows = table(before.model), table(after.model)
        assert len(new_rows) == new.vocab_size
        for row, parts in zip(new_rows, origins.mixed, strict=True):
            if parts:
                mean = sum(weight * old_rows[number] for number, weight in parts.items())
                torch.testing.assert_close(row, mean, rtol=0, atol=1e-6)
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    row = theirs(MEDICINE[0])["input_ids"]
    assert row == list(new.frame.row(new.encode(MEDICINE[0])).ids)
    model = transformers.AutoModelForMaskedLM.from_pretrained(out).eval()
    ids_1T = torch.tensor([row[:30]])
    with torch.inference_mode():
        logits_TV = after.model.eval()(ids_1T, torch.zeros_like(ids_1T)).mlm_logits_MV
        torch.testing.assert_close(logits_TV, model(input_ids=ids_1T).logits[0])


@pytest.mark.parametrize(
    ("kind", "name"), [("wordpiece", "WordPiece"), ("byte-bpe", "byte-level BPE"), ("unigram", "Unigram")]
)
def test_the_config_chooses_the_kind_and_a_repeat_gives_the_same_bytes(
    tmp_path: Path, corpus: Path, kind: str, name: str
) -> None:
    source, config = family_folder("bert", tmp_path / "model"), config_of(corpus, tmp_path, kind=kind)
    results = [run_cli("transplant", source, config, tmp_path / out) for out in ("one", "two")]
    assert [each.returncode for each in results] == [0, 0], results[0].stderr
    assert results[0].stdout == f"{tmp_path / 'one'}\n"
    assert f"training a {name} vocabulary" in results[0].stderr
    assert " pieces in place of 400: copied " in results[0].stderr
    one, two = ((tmp_path / out / "model.safetensors").read_bytes() for out in ("one", "two"))
    assert one == two


def test_a_model_is_transplanted_trained_and_asked(tmp_path: Path) -> None:
    text = write_corpus(tmp_path / "corpus.txt", 20, 6)
    config = small_config(text, tmp_path / "run", data={"objective": "mlm"})
    path = write_config(tmp_path / "config.yaml", config)
    source = family_folder("bert", tmp_path / "model")
    result = run_cli("transplant", source, path, tmp_path / "out", "--set", "tokenizer.vocab_size=300")
    assert result.returncode == 0, result.stderr
    config["model"], config["tokenizer"] = {"init_from": str(tmp_path / "out")}, {}
    config["training"] = {"steps": 2, "warmup_steps": 0, "batch_size": 8}
    result = run_cli("pretrain", write_config(path, config))
    assert result.returncode == 0, result.stderr
    assert "vocabulary 300," in result.stderr
    assert "held-out text: " in result.stderr
    result = run_cli("predict-mask", tmp_path / "run", "The [MASK] was dark.")
    assert result.returncode == 0, result.stderr


def test_a_vocabulary_that_exists_is_taken_and_the_models_own_changes_nothing(
    tmp_path: Path, corpus: Path
) -> None:
    source, out = family_folder("roberta", tmp_path / "model"), tmp_path / "out"
    result = run_cli("transplant", source, config_of(corpus, tmp_path, path=str(source)), out)
    assert result.returncode == 0, result.stderr
    before, after = (load_model_folder(each, pairs=False).model.state_dict() for each in (source, out))
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_what_is_of_no_use_is_refused_before_the_corpus_is_read(tmp_path: Path, corpus: Path) -> None:
    source, config = family_folder("bert", tmp_path / "model"), config_of(corpus, tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    for arguments, says in (
        ((source, config, tmp_path / "out"), "exists already"),
        ((tmp_path / "none", config, tmp_path / "new"), "no such folder"),
        ((source, config, tmp_path / "new", "--set", "corpus.files=[none.txt]"), "none.txt"),
    ):
        result = run_cli("transplant", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert says in result.stderr
        assert "training" not in result.stderr
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    assert not (tmp_path / "new").exists()
