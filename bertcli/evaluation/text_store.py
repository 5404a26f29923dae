"""Any text, tokenized by a model's own tokenizer in a folder that is removed later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.distributed import ranks
from bertcli.store.build import prepare_store
from bertcli.store.progress import Report
from bertcli.store.token_store import OpenStore


def text_store(folder: Path, corpus: Mapping[str, Any], scratch: str, report: Report) -> OpenStore:
    """All of the text, none held out. Ranks may have no common disk: each builds a store of its own, in its
    own process.

    Args:
        folder: of the model.
        corpus: keys of `config.schema.CorpusConfig`.
        scratch: where the store is built.

    Raises:
        UserError: the corpus cannot be read.
    """
    config = check_config(
        PretrainConfig,
        {
            "output_dir": scratch,
            "corpus": {**corpus, "heldout_fraction": 0.0},
            "tokenizer": {"path": str(folder), "lowercase": True},
        },
        "the options",
    )
    return prepare_store(config, report, processes=None if ranks.num_ranks() == 1 else 0)
