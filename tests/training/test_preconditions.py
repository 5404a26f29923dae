"""What a run needs that is not there stops it before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.system.errors import UserError
from bertcli.training.finetuning import finetune
from bertcli.training.pretraining import pretrain
from bertcli.training.train import finetune_parts
from tests.decided import recipe
from tests.finetunes import spam_config, spam_files
from tests.small_runs import small_config, write_corpus

TRACKERS = ("tensorboard", "mlflow", "wandb", "trackio")
PACKAGES = {
    "tensorboard": ("tensorboard",),
    "mlflow": ("mlflow",),
    "wandb": ("wandb",),
    "trackio": ("trackio",),
    "zstd": ("zstandard",),
    "parquet": ("pyarrow", "pyarrow.parquet"),
}


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch):
    """Takes away a package, named as the extra that installs it."""

    def take_away(extra: str) -> None:
        for module in PACKAGES[extra]:
            monkeypatch.setitem(sys.modules, module, None)

    return take_away


@pytest.mark.parametrize("extra", PACKAGES)
def test_pretraining_writes_nothing_where_a_package_is_missing(tmp_path: Path, without, extra: str) -> None:
    text = write_corpus(tmp_path / "corpus.txt", documents=4)
    (tmp_path / "more.zst").write_bytes(b"(\xb5/\xfd")
    value = small_config(text, tmp_path / "run")
    if extra in TRACKERS:
        value["logging"]["trackers"] = [extra]
    elif extra == "zstd":
        value["corpus"]["files"].append(str(tmp_path / "more.zst"))
    else:
        value["corpus"]["format"] = "parquet"
    config = check_config(PretrainConfig, value, "test")
    without(extra)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match=rf"pip install 'bertcli\[{extra}\]'"):
        pretrain(config, resume=False, overwrite=False)
    if extra not in TRACKERS:
        with pytest.raises(UserError, match=rf"pip install 'bertcli\[{extra}\]'"):
            prepare_store(recipe(value), lambda line: None)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("extra", PACKAGES)
def test_fine_tuning_writes_nothing_where_a_package_is_missing(tmp_path: Path, without, extra: str) -> None:
    spam_files(tmp_path)
    value = spam_config(tmp_path)
    if extra in TRACKERS:
        value["logging"] = {"trackers": [extra]}
    else:
        name = tmp_path / {"zstd": "dev.tsv.zst", "parquet": "dev.parquet"}[extra]
        name.write_bytes(b"(\xb5/\xfd")
        value["task"]["dev"] = str(name)
    config = check_config(FinetuneConfig, value, "test")
    seeds = config.model_copy(update={"seeds": [1, 2]})
    without(extra)
    before = sorted(tmp_path.iterdir())
    for run, given in ((finetune, config), (finetune_parts, seeds)):
        with pytest.raises(UserError, match=rf"pip install 'bertcli\[{extra}\]'"):
            run(given, resume=False, overwrite=False)
    assert sorted(tmp_path.iterdir()) == before


def test_a_missing_corpus_leaves_no_run_behind(tmp_path: Path) -> None:
    config = check_config(PretrainConfig, small_config(tmp_path / "nowhere.txt", tmp_path / "run"), "test")
    with pytest.raises(UserError, match="no such file or folder"):
        pretrain(config, resume=False, overwrite=False)
    assert list(tmp_path.iterdir()) == []
