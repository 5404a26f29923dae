"""A folder of replaced words that was put together wrongly is an error that names the file."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bertcli.families.family import FamilyName, Sharing
from bertcli.folders.config_file import new_architecture
from bertcli.folders.convert import convert
from bertcli.folders.lengths import trained_length
from bertcli.folders.model_folder import load_rtd_folder, save_rtd_folder
from bertcli.model.pretraining import ReplacedTokenModel
from bertcli.objectives.registry import RTD
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.decided import model_config
from tests.tokenizer.tokenizers_of import make_tokenizer_folder


def written(folder: Path, family: FamilyName, model_type: str) -> Path:
    tokenizer = Tokenizer.load(make_tokenizer_folder(model_type, folder / "tokenizer", vocab_size=300))
    sizes = model_config(
        family=family,
        preset=None,
        layers=2,
        hidden=16,
        heads=2,
        feed_forward=32,
        max_positions=32,
        dropout=0.0,
    )
    torch.manual_seed(0)
    sharing = "tied" if family == "electra" else "gradient-disentangled"
    model = ReplacedTokenModel(new_architecture(sizes, tokenizer.vocab_size, objective=RTD), sharing)
    (folder / "model").mkdir()
    save_rtd_folder(folder / "model", model, tokenizer, trained_length=32)
    return folder / "model"


@pytest.fixture
def electra(tmp_path: Path) -> Path:
    return written(tmp_path, "electra", "electra")


def test_convert_takes_the_generator_along(electra: Path, tmp_path: Path) -> None:
    convert(electra, tmp_path / "converted", None)
    ours, theirs = (
        load_file(folder / "generator" / "model.safetensors") for folder in (tmp_path / "converted", electra)
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    load_rtd_folder(tmp_path / "converted", "tied")


def test_a_generator_without_its_head_is_refused(electra: Path) -> None:
    path = electra / "generator" / "model.safetensors"
    weights = {name: each for name, each in load_file(path).items() if name.startswith("electra.")}
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(UserError, match="has no masked-language-model head"):
        load_rtd_folder(electra, "tied")


def test_a_generator_with_another_vocabulary_is_refused(electra: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "other", "electra", "electra") / "generator"
    pieces = (other / "vocab.txt").read_text().splitlines()
    pieces[-1], pieces[-2] = pieces[-2], pieces[-1]
    (other / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (other / "tokenizer.json").unlink()
    shutil.rmtree(electra / "generator")
    shutil.copytree(other, electra / "generator")
    with pytest.raises(UserError, match="has another vocabulary than the discriminator"):
        load_rtd_folder(electra, "tied")


def test_differences_that_are_damaged_are_named(tmp_path: Path) -> None:
    folder = written(tmp_path, "deberta-v3", "deberta-v2")
    path = folder / "differences.safetensors"
    mode, usual = path.stat().st_mode, (folder / "config.json").stat().st_mode
    assert stat.S_IMODE(mode) == stat.S_IMODE(usual)  # readable by all who can read the folder
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=r"differences.safetensors"):
        load_rtd_folder(folder, "gradient-disentangled")


@pytest.mark.parametrize("sharing", ["tied", "gradient-disentangled"])
def test_both_models_get_more_positions(tmp_path: Path, electra: Path, sharing: Sharing) -> None:
    folder, before = tmp_path / "shared", load_rtd_folder(electra, sharing)
    save_rtd_folder(folder, before, Tokenizer.load(electra), trained_length=32)
    model = load_rtd_folder(folder, sharing, adapt=lambda sizes: sizes.with_positions(70))
    for part in (model, model.generator):
        assert part.architecture.usable_positions == part.body.embeddings.usable_positions == 70
        assert part.body.embeddings.position is not None
        table = part.body.embeddings.position.weight
        assert torch.equal(table[32:64], table[:32])
        assert torch.equal(table[64:], table[:6])


def test_the_trained_length_stays_in_a_copy(electra: Path, tmp_path: Path) -> None:
    from bertcli.folders.convert import convert

    convert(electra, tmp_path / "copy", None)
    assert trained_length(tmp_path / "copy") == 32
