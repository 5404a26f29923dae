"""New words in a model's vocabulary: shorter text, old ids unchanged, embeddings of the pieces replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bertcli.folders.model_folder import load_model_folder
from bertcli.tokenizer.extend import extend
from tests.families.published import FAMILY_TYPES, family_folder
from tests.small_runs import run_cli, write_config
from tests.tokenizer.test_extend import MEDICINE


@pytest.mark.parametrize("model_type", FAMILY_TYPES)
def test_the_extended_folder_is_a_model_that_transformers_reads(tmp_path: Path, model_type: str) -> None:
    source = family_folder(model_type, tmp_path / "model")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n\n".join(MEDICINE), encoding="utf-8")
    config = write_config(
        tmp_path / "config.yaml", {"output_dir": str(tmp_path / "run"), "corpus": {"files": [str(corpus)]}}
    )
    out = tmp_path / "extended"
    result = run_cli("extend-vocab", source, config, out, "--add", 5, "--json")
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["added"] == 5
    assert said["pieces_per_word_after"] < said["pieces_per_word_before"]
    before, after = load_model_folder(source, pairs=False), load_model_folder(out, pairs=False)
    first = before.tokenizer.vocab_size
    old, new = (each.model.body.embeddings.word.weight for each in (before, after))
    assert torch.equal(new[:first], old[:first])
    piece = after.tokenizer.token(first)
    done = extend(before.tokenizer, MEDICINE, 5, report=pytest.fail)
    replaced = [done.replaced[number - first] for number in range(first, first + 5)]
    means = torch.stack([old[ids].mean(dim=0) for ids in replaced])
    torch.testing.assert_close(new[first : first + 5], means, rtol=0, atol=1e-6)
    old, new = (each.model.mlm_head.bias for each in (before, after))
    means = torch.stack([old[ids].mean() for ids in replaced])
    torch.testing.assert_close(new[first : first + 5], means, rtol=0, atol=1e-6)
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    ids = theirs(MEDICINE[0], add_special_tokens=False)["input_ids"]
    assert ids == after.tokenizer.encode(MEDICINE[0])
    assert theirs.convert_ids_to_tokens([first]) == [piece]


def test_a_head_that_has_no_place_is_named(tmp_path: Path) -> None:
    source = family_folder("bert", tmp_path / "model")
    tensors = load_file(source / "model.safetensors") | {"classifier.weight": torch.ones(2, 4)}
    save_file(tensors, source / "model.safetensors", metadata={"format": "pt"})
    config = write_config(
        tmp_path / "config.yaml", {"output_dir": str(tmp_path / "run"), "corpus": {"files": ["classics"]}}
    )
    result = run_cli("extend-vocab", source, config, tmp_path / "out", "--add", 2)
    assert result.returncode == 0, result.stderr
    said = "dropped, since no class of transformers holds it with the rest: classifier.weight\n"
    assert said in result.stderr


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    source = family_folder("bert", tmp_path / "model")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    config = write_config(
        tmp_path / "config.yaml", {"output_dir": str(tmp_path / "run"), "corpus": {"files": ["classics"]}}
    )
    result = run_cli("extend-vocab", source, config, tmp_path / "out", "--add", 2)
    assert result.returncode == 2
    assert "exists already" in result.stderr
    assert "reading" not in result.stderr  # found before the corpus is read
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
