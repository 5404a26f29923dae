"""Every family from raw text: its folder in transformers' class, its objective, and an exact resume."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from bertcli.config.load import check_config, load_config
from bertcli.config.schema import PretrainConfig
from bertcli.families.family import FamilyName, Sharing
from bertcli.families.registry import NEW
from bertcli.folders.model_folder import load_model_folder, load_rtd_folder
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.transplant import find_origins
from bertcli.training.pretraining import pretrain
from tests.small_runs import read_rows, run_cli, small_config, start_and_signal, write_config

SIZES = {"layers": 2, "hidden": 32, "heads": 4, "feed_forward": 64, "max_positions": 40, "dropout": 0.1}


def family_config(corpus: Path, folder: Path, family: FamilyName, **sections: Any) -> dict[str, Any]:
    config = small_config(corpus, folder / "run", model={"family": family, **SIZES})
    config["tokenizer"] = {"vocab_size": 400}
    del config["data"]["objective"], config["data"]["mask_split"]
    for section, values in sections.items():
        config[section] |= values
    config["corpus"]["store"] = str(corpus.parent / f"store-{family}")
    return config


@pytest.fixture(scope="module")
def runs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[FamilyName, Path]:
    """A finished run of each family."""
    folders = {}
    for family in NEW:
        folder = tmp_path_factory.mktemp(family)
        config = check_config(PretrainConfig, family_config(corpus, folder, family), "the test")
        pretrain(config, resume=False, overwrite=False)
        folders[family] = folder / "run"
    return folders


def load_with_transformers(folder: Path, kind: str, family: FamilyName) -> Any:
    """The model in the family's class; nothing is missing, and nothing but the head that no class has."""
    cls = getattr(transformers, NEW[family].family.classes[kind])
    loaded: Any = cls.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    model, info = loaded
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    assert all(name.startswith("mask_predictions.") for name in info["unexpected_keys"])
    return model


def two_rows(folder: Path) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """What transformers' tokenizer gives for two texts; ids and mask for ours."""
    texts, tokenizer = ["It was the end of a long day.", "Late."], Tokenizer.load(folder)
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    row = tokenizer.frame.row(tokenizer.encode(texts[0]))
    assert inputs["input_ids"][0].tolist() == list(row.ids)
    return inputs, inputs["input_ids"], inputs["attention_mask"].bool()


@pytest.mark.parametrize("family", [name for name, fresh in NEW.items() if fresh.objective.name != "rtd"])
@torch.no_grad()
def test_transformers_loads_the_folder_with_equal_outputs(
    runs: dict[FamilyName, Path], family: FamilyName
) -> None:
    folder, objective = runs[family] / "model", NEW[family].objective.name
    theirs = load_with_transformers(folder, "masked-lm" if objective == "mlm" else "pretraining", family)
    inputs, ids_BT, mask_BT = two_rows(folder)
    want = theirs(**inputs)
    words = want.logits if objective == "mlm" else want.prediction_logits
    output = load_model_folder(folder).model.eval()(ids_BT, torch.zeros_like(ids_BT), mask_BT)
    got = output.mlm_logits_MV.unflatten(0, mask_BT.shape)
    torch.testing.assert_close(got[mask_BT], words[mask_BT], rtol=0, atol=1e-5)
    if family == "albert":
        torch.testing.assert_close(output.pair_logits_B2, want.sop_logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "sharing"), [("electra", "tied"), ("deberta-v3", "gradient-disentangled")]
)
@torch.no_grad()
def test_both_models_of_replaced_words_load_with_equal_outputs(
    runs: dict[FamilyName, Path], family: FamilyName, sharing: Sharing
) -> None:
    folder = runs[family] / "model"
    ours, (inputs, ids_BT, mask_BT) = load_rtd_folder(folder, sharing).eval(), two_rows(folder)
    want = load_with_transformers(folder, "discriminator", family)(**inputs)
    hidden_BTD = ours.body(ids_BT, torch.zeros_like(ids_BT), mask_BT)
    if family == "electra":
        got, wanted = ours.rtd_head(hidden_BTD, hidden_BTD[:, :1]), want.logits
    else:
        got, wanted = hidden_BTD, want.last_hidden_state
    torch.testing.assert_close(got[mask_BT], wanted[mask_BT], rtol=0, atol=1e-5)
    generator = load_with_transformers(folder / "generator", "masked-lm", family)
    words = ours.generator(ids_BT, torch.zeros_like(ids_BT), mask_BT).mlm_logits_MV
    got, wanted = words.unflatten(0, mask_BT.shape), generator(**inputs).logits
    torch.testing.assert_close(got[mask_BT], wanted[mask_BT], rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", NEW)
def test_the_run_learns_and_says_so(runs: dict[FamilyName, Path], family: FamilyName) -> None:
    train = read_rows(runs[family] / "metrics.jsonl", "train")
    fresh = NEW[family]
    term = fresh.objective.name.split("+")[-1]
    assert f"{term}_loss" in train[0]
    assert min(row["mlm_loss"] for row in train[-3:]) < train[0]["mlm_loss"]
    card = (runs[family] / "model" / "README.md").read_text()
    assert f"Pretrained with bertcli: {fresh.objective.name}," in card
    if fresh.objective.name == "rtd":
        assert train[0]["loss"] == pytest.approx(train[0]["mlm_loss"] + 50 * train[0]["rtd_loss"], rel=1e-6)
        assert "| weight of replaced tokens | 50 |" in card
    config = load_config(PretrainConfig, runs[family] / "config.yaml")
    assert (config.data.objective, config.tokenizer.kind) == (fresh.objective.name, fresh.tokenizer)
    assert config.model.positions == 40


@pytest.mark.parametrize("family", NEW)
def test_the_first_loss_is_the_expected_one(runs: dict[FamilyName, Path], family: FamilyName) -> None:
    from bertcli.model.init import expected_first_mlm_loss

    first = read_rows(runs[family] / "metrics.jsonl", "train")[0]
    folder = runs[family] / "model"
    folder = folder / "generator" if NEW[family].objective.name == "rtd" else folder
    sizes = load_model_folder(folder).model.architecture
    tolerance = 0.25 if sizes.init_std > 0.02 else 0.1  # one draw of logits of deviation 0.5
    assert first["mlm_loss"] == pytest.approx(expected_first_mlm_loss(sizes), abs=tolerance)


@pytest.mark.parametrize("family", ["roberta", "albert", "electra", "deberta", "deberta-v3", "modernbert"])
def test_a_killed_run_ends_as_an_undisturbed_one(
    corpus: Path, runs: dict[FamilyName, Path], tmp_path: Path, family: FamilyName
) -> None:
    config = write_config(tmp_path / "config.yaml", family_config(corpus, tmp_path, family))
    assert start_and_signal("pretrain", config, tmp_path / "run", 7, signal.SIGKILL) == -signal.SIGKILL
    result = run_cli("pretrain", config, "--resume")
    assert result.returncode == 0, result.stderr
    names = ["model/model.safetensors", "checkpoints/step-00000012/optimizer.safetensors"]
    names += ["model/generator/model.safetensors"] * (NEW[family].objective.name == "rtd")
    for name in names:
        assert (tmp_path / "run" / name).read_bytes() == (runs[family] / name).read_bytes()


def test_a_mask_is_filled_by_the_familys_own_mask_token(runs: dict[FamilyName, Path]) -> None:
    result = run_cli("predict-mask", runs["roberta"], "The <mask> was dark.", "--json")
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout)["masks"]) == 1


def test_going_on_keeps_family_and_tokenizer(
    corpus: Path, runs: dict[FamilyName, Path], tmp_path: Path
) -> None:
    config = small_config(corpus, tmp_path / "run", corpus={"store": str(tmp_path / "store")})
    config["model"] = {"init_from": str(runs["modernbert"])}
    config["tokenizer"] = {}
    del config["data"]["objective"], config["data"]["mask_split"]
    pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)
    before, after = (Tokenizer.load(run / "model").hash for run in (runs["modernbert"], tmp_path / "run"))
    assert before == after
    assert load_model_folder(tmp_path / "run" / "model").model.architecture.family == "modernbert"


def go_on_with(command: str, run: Path, given: dict[str, Any], folder: Path, *options: object) -> Path:
    """The folder with another vocabulary that the command made, from which a run went on."""
    made, path = folder / command, folder / "config.yaml"
    given["corpus"]["store"] = str(folder / "store")
    result = run_cli(command, run, write_config(path, given), made, *options)
    assert result.returncode == 0, result.stderr
    going_on = given | {"model": {"init_from": str(made)}, "tokenizer": {}}
    result = run_cli("pretrain", write_config(path, going_on))
    assert result.returncode == 0, result.stderr
    assert "held-out text: " in result.stderr
    return made


@pytest.mark.parametrize("family", ["electra", "deberta-v3"])
def test_replaced_words_go_on_with_both_models_and_new_pieces(
    corpus: Path, runs: dict[FamilyName, Path], tmp_path: Path, family: FamilyName
) -> None:
    given = family_config(corpus, tmp_path, family)
    extended = go_on_with("extend-vocab", runs[family], given, tmp_path, "--add", 5)
    sharing: Sharing = "tied" if family == "electra" else "gradient-disentangled"
    first, before = (load_rtd_folder(each, sharing) for each in (extended, runs[family] / "model"))
    after = load_rtd_folder(tmp_path / "run" / "model", sharing)
    num_words = before.generator.body.embeddings.word.weight.shape[0]
    for part in (lambda model: model.body, lambda model: model.generator.body):
        old, new, trained = (part(each).embeddings.word.weight for each in (before, first, after))
        torch.testing.assert_close(new[:num_words], old, rtol=0, atol=1e-6)
        assert len(trained) == len(new) == num_words + 5
        assert (trained[num_words:] != new[num_words:]).any(dim=1).all()


@pytest.mark.parametrize("family", ["electra", "deberta-v3"])
def test_replaced_words_go_on_with_both_models_and_another_vocabulary(
    corpus: Path, runs: dict[FamilyName, Path], tmp_path: Path, family: FamilyName
) -> None:
    given = family_config(corpus, tmp_path, family)
    given["tokenizer"] |= {"kind": "byte-bpe", "vocab_size": 330}
    out = go_on_with("transplant", runs[family], given, tmp_path)
    sharing: Sharing = "tied" if family == "electra" else "gradient-disentangled"
    before, after = load_rtd_folder(runs[family] / "model", sharing), load_rtd_folder(out, sharing)
    origins = find_origins(*(Tokenizer.load(each) for each in (runs[family] / "model", out)))
    copied = {new: old for new, parts in enumerate(origins.mixed) for old in parts if len(parts) == 1}
    for part in (lambda model: model.body, lambda model: model.generator.body):
        old, new = (part(each).embeddings.word.weight for each in (before, after))
        assert len(new) == 330
        torch.testing.assert_close(new[[*copied]], old[[*copied.values()]], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"data": {"objective": "mlm+nsp"}}, "mlm+nsp, but the model is a RoBERTa, which has no head for it"),
        ({"tokenizer": {"kind": "byte-bpe", "vocab_size": 100}}, "the 256 bytes"),
        ({"tokenizer": {"kind": "bpe"}}, "tokenizer.kind"),
        ({"training": {"rtd_weight": 10}}, "training.rtd_weight is for data.objective: rtd"),
        ({"model": {"init_from": "x", "generator": {"layers": 2}}}, "init_from sets its layers"),
        ({"tokenizer": {"kind": "unigram", "path": "vocab.txt"}}, "kind is for a vocabulary that is trained"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    corpus: Path, tmp_path: Path, sections: dict[str, Any], says: str
) -> None:
    config = family_config(corpus, tmp_path, "roberta", **sections)
    config["corpus"]["store"] = str(tmp_path / "store")
    result = run_cli("pretrain", write_config(tmp_path / "config.yaml", config))
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run" / "model").exists()
