"""Families on two ranks: layers of another kind (shared weights, windows, shared tables), and objectives."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.families.family import FamilyName
from tests.end_to_end.test_family_pretraining import family_config
from tests.end_to_end.test_ranks import on_ranks
from tests.families.published import family_folder
from tests.finetunes import write_spam_split
from tests.small_runs import read_rows, run_cli, write_config


@pytest.mark.parametrize(
    ("model_type", "parallel"), [("albert", "fsdp"), ("modernbert", "ddp"), ("deberta-v2", "fsdp")]
)
def test_two_ranks_learn_what_one_does(tmp_path: Path, model_type: str, parallel: str) -> None:
    model, files = family_folder(model_type, tmp_path / "model"), write_spam_split(tmp_path)

    def config(name: str) -> Path:
        return write_config(
            tmp_path / f"{name}.yaml",
            {
                "output_dir": str(tmp_path / name),
                "model": str(model),
                "task": {
                    **{"type": "classification", "text": "message", "label": "label", "max_length": 32},
                    **{"train": str(files / "train.tsv"), "dev": str(files / "dev.tsv")},
                },
                "training": {
                    **{"batch_size": 16, "micro_batch_size": 8, "epochs": 1, "learning_rate": 1e-3},
                    **{"precision": "fp32", "device": "cpu", "parallel": parallel},
                },
                "logging": {"every_steps": 1},
            },
        )

    alone = run_cli("finetune", config("alone"))
    assert alone.returncode == 0, alone.stderr
    on_ranks("finetune", config("together"))
    one, two = (read_rows(tmp_path / name / "metrics.jsonl") for name in ("alone", "together"))
    assert len(one) == len(two) >= 4
    for row, other in zip(one, two, strict=True):
        assert other["loss"] == pytest.approx(row["loss"], abs=1e-5)
    norms = [
        (row["grad_norm"], other["grad_norm"])
        for row, other in zip(one, two, strict=True)
        if "grad_norm" in row
    ]
    assert all(other == pytest.approx(norm, rel=1e-4) for norm, other in norms)


@pytest.mark.parametrize(
    ("family", "parallel"), [("albert", "ddp"), ("electra", "ddp"), ("deberta-v3", "fsdp")]
)
def test_two_ranks_pretrain_what_one_does(
    corpus: Path, tmp_path: Path, family: FamilyName, parallel: str
) -> None:
    """The order of sentences and replaced words. No word that is drawn differs in so short a run."""

    def config(name: str) -> Path:
        (tmp_path / name).mkdir()
        training = {"steps": 6, "precision": "fp32", "parallel": parallel}
        given = family_config(corpus, tmp_path / name, family, training=training)
        given["model"]["dropout"], given["corpus"]["store"] = 0.0, str(tmp_path / "store")
        return write_config(tmp_path / f"{name}.yaml", given)

    alone = run_cli("pretrain", config("alone"))
    assert alone.returncode == 0, alone.stderr
    on_ranks("pretrain", config("together"))
    one, two = (read_rows(tmp_path / name / "run" / "metrics.jsonl") for name in ("alone", "together"))
    assert len(one) == len(two) >= 6
    for row, other in zip(one, two, strict=True):
        assert other["loss"] == pytest.approx(row["loss"], rel=1e-5)
