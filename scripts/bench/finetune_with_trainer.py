"""A bertcli fine-tuning config, trained with transformers' Trainer instead; prints JSON: metric, loss.

The peer of scripts/bench/finetune.py: AutoModelFor..., the Trainer with its defaults (random batches padded
to their longest row), the same rows, labels and hyper-parameters, judged by bertcli's metrics.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.tasks.files import find_labeled_file, read_examples
from bertcli.tasks.labels import label_set
from bertcli.tasks.supervised import build_task


def main() -> None:
    config = load_config(FinetuneConfig, Path(sys.argv[1]))
    task, training = config.task, config.training
    assert task.dev is not None
    settings = task.settings
    train = list(read_examples(find_labeled_file(task.train), settings, labeled=True))
    dev = list(read_examples(find_labeled_file(task.dev), settings, labeled=True))
    labels = label_set(train, settings)
    tokenizer = AutoTokenizer.from_pretrained(config.model)
    set_seed(config.seed)  # of the head: the Trainer sets its own when the model is there
    if settings.type == "token-classification":
        model = AutoModelForTokenClassification.from_pretrained(config.model, num_labels=len(labels))
        features = TokenFeatures(tokenizer, labels, settings.max_length)
        collator = DataCollatorForTokenClassification(tokenizer)
    else:
        regression = settings.type == "regression"
        model = AutoModelForSequenceClassification.from_pretrained(
            config.model,
            num_labels=1 if regression else len(labels),
            problem_type="regression" if regression else "single_label_classification",
        )
        features = TextFeatures(tokenizer, labels, settings.max_length)
        collator = DataCollatorWithPadding(tokenizer)
    assert training.learning_rate != "auto", "both programs need the same rate"
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=training.epochs,
            per_device_train_batch_size=training.batch_size,
            per_device_eval_batch_size=training.batch_size,
            learning_rate=training.learning_rate,
            weight_decay=training.weight_decay,
            adam_epsilon=1e-6,
            warmup_steps=training.warmup_ratio,
            max_grad_norm=training.max_grad_norm,
            lr_scheduler_type="linear",
            bf16=training.precision == "bf16",
            use_cpu=not torch.cuda.is_available(),
            seed=config.seed,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            logging_steps=10,
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=[features(example) for example in train],  # pyright: ignore[reportArgumentType]
            eval_dataset=[features(example) for example in dev],  # pyright: ignore[reportArgumentType]
            data_collator=collator,
        )
        trainer.train()
        judged = trainer.predict([features(example) for example in dev])  # pyright: ignore[reportArgumentType]
    logits, wanted = np.asarray(judged.predictions), np.asarray(judged.label_ids)
    if isinstance(features, TokenFeatures):
        scores = token_scores(logits, dev, labels, features)
    else:
        scores = row_scores(logits, dev, config, labels)
    print(json.dumps({"metric": scores[task.metric or "accuracy"], "loss": dev_loss(logits, wanted)}))


def dev_loss(logits: np.ndarray, wanted: np.ndarray) -> float:
    """The mean over all texts or words, where the Trainer's own is one over batches of unlike size."""
    found, target = torch.from_numpy(logits), torch.from_numpy(wanted)
    if target.is_floating_point():
        return float(F.mse_loss(found.view_as(target), target))
    return float(F.cross_entropy(found.flatten(0, -2), target.flatten(), ignore_index=-100))


class TextFeatures:
    """A text or a pair with its label, as the Trainer wants it."""

    def __init__(self, tokenizer: Any, labels: tuple[str, ...], max_length: int):
        self.tokenizer, self.labels, self.max_length = tokenizer, labels, max_length

    def __call__(self, example: Any) -> dict[str, Any]:
        texts, label = example.texts, example.label
        row = self.tokenizer(*texts, truncation=True, max_length=self.max_length)
        return dict(row) | {"labels": label if isinstance(label, float) else self.labels.index(label)}


class TokenFeatures:
    """Words with a tag each; labels on first pieces, the others -100."""

    def __init__(self, tokenizer: Any, labels: tuple[str, ...], max_length: int):
        self.tokenizer, self.labels, self.max_length = tokenizer, labels, max_length

    def __call__(self, example: Any) -> dict[str, Any]:
        row = self.tokenizer(
            list(example.words), is_split_into_words=True, truncation=True, max_length=self.max_length
        )
        words, tags = row.word_ids(), []
        for before, word in zip([None, *words], words, strict=False):
            is_first = word is not None and word != before
            tags.append(self.labels.index(example.tags[word]) if is_first else -100)
        return dict(row) | {"labels": tags}


def row_scores(logits: np.ndarray, dev: list[Any], config: FinetuneConfig, labels: tuple[str, ...]) -> Any:
    task = build_task(config.task.settings, labels)
    predicted = [task.predict(each, [], [torch.tensor([row])]) for each, row in zip(dev, logits, strict=True)]
    return task.score(dev, predicted)


def token_scores(logits: np.ndarray, dev: list[Any], labels: tuple[str, ...], features: TokenFeatures) -> Any:
    from bertcli.tasks.entities import entity_scores

    predicted = []
    for example, row in zip(dev, logits, strict=True):
        wanted = np.array(features(example)["labels"])
        chosen = [labels[i] for i in row[: len(wanted)].argmax(axis=-1)[wanted != -100]]
        predicted.append(chosen + ["O"] * (len(example.words) - len(chosen)))  # what was cut off has no tag
    return entity_scores([example.tags for example in dev], predicted)


if __name__ == "__main__":
    main()
