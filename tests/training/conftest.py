from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.batches.share import BatchSizes
from bertcli.batches.stream import BatchStream
from bertcli.corpus.build import prepare_store
from tests.decided import recipe
from tests.small_runs import small_config


@pytest.fixture(scope="module")
def stream(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> BatchStream:
    value = small_config(corpus, tmp_path_factory.mktemp("run"))
    config = recipe(value)
    store = prepare_store(config, lambda line: None)
    return BatchStream(store.train, store.tokenizer, config.data, seed=1, sizes=BatchSizes(64))
