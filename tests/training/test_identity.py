"""What a run reads, compared on a resume: each file that is read must be as it was, and no other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentencepiece import sentencepiece_model_pb2

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError
from bertcli.training.identity import check_same_data, pretraining_inputs, task_identity
from tests.families.published import family_folder
from tests.finetunes import checked, run, spam_config, spam_files, write_model, write_spam
from tests.small_runs import small_config, write_config

LABELS = ("ham", "spam")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return spam_files(tmp_path)


def test_a_resume_wants_the_same_labels_and_files(files: Path) -> None:
    config, note = checked(spam_config(files)), files / "data.json"
    before = task_identity(config, LABELS)
    check_same_data(before, task_identity(config, LABELS), note)
    with pytest.raises(
        UserError, match="the labels are ham, spam, eggs now, and were ham, spam at the start"
    ):
        check_same_data(before, task_identity(config, (*LABELS, "eggs")), note)
    with pytest.raises(UserError, match="the labels are none now"):
        check_same_data(before, task_identity(config, ()), note)
    write_spam(files / "dev.tsv", rows=21, skip=60)
    with pytest.raises(
        UserError, match=rf"cannot resume: {files}/dev.tsv changed since the start of the run"
    ):
        check_same_data(before, task_identity(config, LABELS), note)


def edit(path: Path, **keys: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


READ: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "heads": ("config.json", lambda path: edit(path, num_attention_heads=2)),
    "epsilon": ("config.json", lambda path: edit(path, layer_norm_eps=1e-6)),
    "dropout": ("config.json", lambda path: edit(path, hidden_dropout_prob=0.3)),
    "attention dropout": ("config.json", lambda path: edit(path, attention_probs_dropout_prob=0.3)),
    "activation": ("config.json", lambda path: edit(path, hidden_act="relu")),
    "length": ("tokenizer_config.json", lambda path: edit(path, model_max_length=48)),
    "no tokenizer config": ("tokenizer_config.json", Path.unlink),
    "a new token": ("added_tokens.json", lambda path: path.write_text('{"fooo": 4}')),
    "tokenizer": ("tokenizer.json", lambda path: path.write_text(path.read_text() + "\n")),
    "weights": ("model.safetensors", damage),
}
UNREADABLE = ("activation", "a new token")
"""These changes make a folder that cannot be read at all, which its reader says."""
UNREAD = ("README.md", "vocab.txt", "training_args.bin", "manifest.json", "notes.txt")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a teacher, which more epochs may go on from."""
    folder = spam_files(tmp_path_factory.mktemp("finished"))
    run(spam_config(folder, output_dir=str(folder / "teacher"), training={"epochs": 0.3}))
    config = spam_config(folder, training={"epochs": 0.3}, distillation={"teacher": str(folder / "teacher")})
    write_config(folder / "config.yaml", config)
    run(config)
    return folder


@pytest.mark.parametrize("folder", ["bert", "teacher/model"])
@pytest.mark.parametrize("change", READ)
def test_a_resume_refuses_another_source_or_teacher(
    finished: Path, folder: str, change: str, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    name, act = READ[change]
    path = finished / folder / name
    kept = path.read_bytes() if path.exists() else None
    model = (finished / "run/model/model.safetensors").read_bytes()
    act(path)
    try:
        code, _, said = run_bertcli("finetune", finished / "config.yaml", "--resume")
    finally:
        path.unlink(missing_ok=True)
        if kept is not None:
            path.write_bytes(kept)
    assert code == 2
    refused = f"cannot resume: {path} changed since the start of the run"
    if change in UNREADABLE:
        refused = f"error: {path}:"
    assert refused in said
    assert (finished / "run/model/model.safetensors").read_bytes() == model


def swap_last_ids(path: Path) -> None:
    first, second = list(ids := json.loads(path.read_text()))[-3:-1]
    path.write_text(json.dumps(ids | {first: ids[second], second: ids[first]}))


def drop_last_merge(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def change_a_score(path: Path) -> None:
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())  # pyright: ignore[reportAttributeAccessIssue]
    model.pieces[-1].score -= 1.0
    path.write_bytes(model.SerializeToString())


VOCABULARIES: dict[str, dict[str, Callable[[Path], Any]]] = {
    "roberta": {"vocab.json": swap_last_ids, "merges.txt": drop_last_merge},
    "albert": {"spiece.model": change_a_score},
    "deberta-v2": {"spm.model": change_a_score},
}
"""Model type -> the files of a folder without a tokenizer.json, and a change that another folder may have."""


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_a_resume_refuses_another_vocabulary(
    kind: str, tmp_path: Path, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    folder = family_folder(kind, tmp_path / "source", slow=True)
    write_spam(tmp_path / "train.tsv", rows=16)
    write_spam(tmp_path / "dev.tsv", rows=8, skip=16)
    config = write_config(
        tmp_path / "config.yaml", spam_config(tmp_path, model=str(folder), training={"epochs": 1})
    )
    code, _, said = run_bertcli("finetune", config)
    assert code == 0, said
    for name, act in VOCABULARIES[kind].items():
        kept = (folder / name).read_bytes()
        act(folder / name)
        code, _, said = run_bertcli("finetune", config, "--resume")
        assert code == 2
        assert f"cannot resume: {folder / name} changed since the start of the run" in said
        (folder / name).write_bytes(kept)
    code, _, said = run_bertcli("finetune", config, "--resume")
    assert (code, "is finished" in said) == (0, True), said


def test_a_file_that_is_not_read_may_change(
    finished: Path, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    for folder in ("bert", "teacher/model"):
        for name in UNREAD:
            (finished / folder / name).write_text("changed")
    code, _, said = run_bertcli("finetune", finished / "config.yaml", "--resume")
    assert (code, "is finished" in said) == (0, True), said


@pytest.mark.parametrize("key", ["distillation.teacher", "model.init_from"])
def test_a_pretraining_resume_refuses_another_config_json(
    key: str, tmp_path: Path, corpus: Path, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    folder = write_model(tmp_path / "bert", dropout=0.0)
    config = small_config(corpus, tmp_path / "run", training={"steps": 2}, data={"objective": "mlm"})
    config["corpus"]["store"], config["tokenizer"] = str(tmp_path / "store"), {}
    section, name = key.split(".")
    config["model"] = {"preset": "tiny", "layers": 2, "hidden": 32, "max_positions": 32, "dropout": 0.0}
    config[section] = {name: str(folder)}
    path = write_config(tmp_path / "config.yaml", config)
    code, _, said = run_bertcli("pretrain", path)
    assert code == 0, said
    model = (tmp_path / "run/model/model.safetensors").read_bytes()
    edit(folder / "config.json", hidden_dropout_prob=0.3, layer_norm_eps=1e-6)
    code, _, said = run_bertcli("pretrain", path, "--resume")
    assert code == 2
    assert f"cannot resume: {folder / 'config.json'} changed since the start of the run" in said
    assert (tmp_path / "run/model/model.safetensors").read_bytes() == model


def test_a_run_of_an_earlier_version_is_compared_by_what_it_noted(finished: Path, tmp_path: Path) -> None:
    config = checked(spam_config(finished))
    now, note = task_identity(config, LABELS), tmp_path / "data.json"
    weights = str(finished / "bert/model.safetensors")
    before = {"labels": list(LABELS), "files": now["files"] | {weights: now["models"][weights]}}
    check_same_data(before, now, note)
    before["files"][weights] = "0"
    with pytest.raises(UserError, match=f"{weights} changed"):
        check_same_data(before, now, note)


KINDS: dict[str, tuple[str, ...]] = {
    "roberta": ("vocab.json", "merges.txt", "special_tokens_map.json", "tokenizer_config.json"),
    "albert": ("spiece.model", "tokenizer_config.json"),
    "deberta-v2": ("spm.model", "added_tokens.json"),
    "xlm-roberta": ("sentencepiece.bpe.model",),
    "bert": ("vocab.txt", "tokenizer_config.json"),
}
"""The vocabulary's files in a folder without a tokenizer.json, by the model type."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_sharded", [False, True])
def test_the_files_of_each_kind_of_folder_are_known(kind: str, is_sharded: bool, tmp_path: Path) -> None:
    """The folder of a fine-tuning run; that of a model to go on from, or a teacher, has the same."""
    names = [*KINDS[kind], "config.json", "model.safetensors"]
    if is_sharded:
        names[-1:] = ["model.safetensors.index.json", "a-1.safetensors", "a-2.safetensors"]
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in (*names, "README.md", "optimizer.pt", "other.safetensors", "pytorch_model.bin"):
        (folder / name).write_text("{}")
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    if is_sharded:
        shards = {"weight_map": {"x": "a-1.safetensors", "y": "a-2.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(shards))
    write_spam(tmp_path / "train.tsv", rows=3)
    shutil.copy(tmp_path / "train.tsv", tmp_path / "dev.tsv")
    config = checked(spam_config(tmp_path, model=str(folder)))
    before = task_identity(config, LABELS)
    assert {Path(name).name for name in before["models"]} == set(names)
    general = small_config(tmp_path, tmp_path / "run", model={"init_from": str(folder), "dropout": 0.0})
    general["corpus"] = {"files": [str(tmp_path / "dev.tsv")], "general": [str(tmp_path / "train.tsv")]}
    general["distillation"] = {"teacher": str(folder)}
    general["data"]["objective"] = "mlm"
    inputs = list(pretraining_inputs(check_config(PretrainConfig, general, "test")))
    for key in ("model.init_from", "distillation.teacher"):
        assert {each.path.name for each in inputs if each.key == key} == set(names)
    assert [each.path.name for each in inputs if each.key == "corpus.general"] == ["train.tsv"]
