"""A pretrained model and any text -> its MLM and NSP losses and accuracies."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bertcli.config.load import check_config
from bertcli.config.schema import DataConfig, PretrainConfig
from bertcli.data.share import Share
from bertcli.distributed import ranks
from bertcli.errors import UserError
from bertcli.evaluation.evaluate import evaluate
from bertcli.evaluation.heldout import HeldoutBatches
from bertcli.evaluation.run_reading import as_in_the_run
from bertcli.hardware import resolve_precision
from bertcli.hf.folder import load_model_folder
from bertcli.store.build import prepare_store
from bertcli.tasks.pretraining import PretrainingTask


def measure_corpus(
    folder: Path,
    corpus: Mapping[str, Any],
    max_length: int | None,
    batch_size: int,
    batches: int | None,
    device: torch.device,
) -> dict[str, Any]:
    """MLM loss, perplexity and accuracy; NSP loss and accuracy where the model has the head.

    Args:
        folder: a model folder (`hf.locate.resolve_model`).
        corpus: keys of `config.schema.CorpusConfig`; others are those of the run that made the model.
        max_length: tokens in a row; None: as the model was trained.
        batches: at most so many; None: all of the text once.

    Raises:
        UserError: the model has no head for it; the corpus cannot be read.
    """
    loaded = load_model_folder(folder)
    if loaded.task is not None:
        raise UserError(
            f"{folder}: is fine-tuned for {loaded.task}; measure it on a labeled file: --data FILE"
        )
    if not loaded.report.has_mlm_head():
        raise UserError(f"{folder}: has no masked-language-model head to evaluate; pretrain it first")
    with_nsp = loaded.model.nsp_head is not None
    corpus, max_length = as_in_the_run(folder, corpus, max_length, _say)
    positions = loaded.model.architecture.max_positions
    if max_length > positions:
        raise UserError(f"--max-length {max_length}: the model reads at most {positions} tokens")
    with tempfile.TemporaryDirectory() as scratch:
        config = check_config(
            PretrainConfig,
            {
                "output_dir": scratch,
                "corpus": {**corpus, "heldout_fraction": 0.0},
                "tokenizer": {"path": str(folder)},
            },
            "the options",
        )
        # Ranks may share no disk: each builds its own store, in its own process.
        processes = None if ranks.num_ranks() == 1 else 0
        text = prepare_store(config, _say, processes=processes).train
        data = DataConfig(objective="mlm+nsp" if with_nsp else "mlm", max_length=max_length)
        stream = HeldoutBatches(text, loaded.tokenizer, data, batch_size)
        if with_nsp and not stream.with_nsp:
            _say("the text gives no sentence pairs: MLM alone")
        rows_a_rank = math.ceil(batch_size / ranks.num_ranks())
        scores = evaluate(
            loaded.model.to(device),
            PretrainingTask(),
            stream.steps(Share(rows_a_rank, ranks.rank(), ranks.num_ranks()), batches),
            device,
            resolve_precision("auto", device),
        )
    measured: dict[str, Any] = {
        "mlm_loss": scores.losses["mlm"],
        "perplexity": math.exp(min(scores.losses["mlm"], 700)),
        "mlm_accuracy": scores.accuracies["mlm"],
    }
    if stream.with_nsp:  # every batch is half IsNext: one answer to all of them is right half of the time
        measured |= {
            "nsp_loss": scores.losses["nsp"],
            "nsp_accuracy": scores.accuracies["nsp"],
            "nsp_majority": 0.5,
        }
    return measured | {"tokens": scores.tokens}


def _say(line: str) -> None:
    print(line, file=sys.stderr)
