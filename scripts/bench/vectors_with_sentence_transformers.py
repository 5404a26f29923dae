"""The peer of scripts/bench/vectors.py, in an environment with sentence-transformers.

    PYTHON vectors_with_sentence_transformers.py train CONFIG
    PYTHON vectors_with_sentence_transformers.py encode MODEL ROWS.csv VECTORS.npy

`train` does with the library's own trainer and losses what `bertcli finetune CONFIG` does; `encode` writes
the vectors of the columns `first` and `second`, in fp32. Nothing of bertcli is imported.
"""

# pyright: reportMissingImports=false
# The libraries are in an environment of their own.
from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.losses import CoSENTLoss, MultipleNegativesRankingLoss
from sentence_transformers.models import Pooling, Transformer
from sentence_transformers.training_args import BatchSamplers


def train(config: dict[str, Any]) -> None:
    task, training = config["task"], config["training"]
    rows = read(task["train"])
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    if "score" in columns:
        columns["score"] = [float(score) for score in columns["score"]]
    transformer = Transformer(config["model"], max_seq_length=task["max_length"])
    width = transformer.get_word_embedding_dimension()
    model = SentenceTransformer(modules=[transformer, Pooling(width)], device="cpu")
    scored = "score" in columns
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=config["output_dir"],
            num_train_epochs=training["epochs"],
            per_device_train_batch_size=training["batch_size"],
            learning_rate=training["learning_rate"],
            weight_decay=0.01,
            adam_epsilon=1e-6,
            warmup_ratio=0.1,
            max_grad_norm=1.0,
            lr_scheduler_type="linear",
            bf16=training["precision"] == "bf16",
            use_cpu=True,
            seed=config["seed"],
            batch_sampler=BatchSamplers.BATCH_SAMPLER if scored else BatchSamplers.NO_DUPLICATES,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict(columns),
        loss=(CoSENTLoss if scored else MultipleNegativesRankingLoss)(model),
    )
    trainer.train()
    model.save(str(Path(config["output_dir"]) / "model"))


def encode(model: str, rows: str, target: str) -> None:
    encoder, found = SentenceTransformer(model, device="cpu"), read(rows)
    np.save(target, np.stack([encoder.encode([row[name] for row in found]) for name in ("first", "second")]))


def read(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(json.loads(Path(sys.argv[2]).read_text()))
    else:
        encode(*sys.argv[2:])
