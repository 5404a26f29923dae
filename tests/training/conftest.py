from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.batches.stream import BatchStream
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from tests.small_runs import small_config


@pytest.fixture(scope="module")
def stream(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> BatchStream:
    value = small_config(corpus, tmp_path_factory.mktemp("run"))
    config = check_config(PretrainConfig, value, "test")
    store = prepare_store(config, lambda line: None)
    return BatchStream(store.train, store.tokenizer, config.data, seed=1, batch_size=64)
