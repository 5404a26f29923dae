"""What the tests of a corpus' checks share."""

from __future__ import annotations

from pathlib import Path

from bertcli.advice.check.pretraining import CorpusReport, check_pretraining
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.training.recipe import decide_recipe
from tests.corpus.builds import make_config, silent


def check(config: PretrainConfig, tokenize_all: bool = False, processes: int = 0) -> CorpusReport:
    return check_pretraining(decide_recipe(config, silent), tokenize_all, silent, processes)


def vocabulary(folder: Path) -> Path:
    """A tokenizer trained on the corpus of `folder`."""
    return prepare_store(make_config(folder, store=str(folder / "first")), silent).folder / "tokenizer"
