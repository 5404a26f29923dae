"""Fine-tuning here and with transformers' model, step by step on the same batches: do both learn the same?

    python scripts/check/finetune_parity.py MODEL [--seed 1] [--epochs 3] [--steps N] [--head-std S]

The bundled wnut17, MODEL any BERT folder; both sides begin with the same head, and take random batches of 32,
dropout 0.1 (each draws its own), AdamW, linear decay after a warm-up over a tenth. Prints the mean training
losses of each stretch of 40 steps, then loss and entity F1 on the dev data. With --head-std the head is drawn
from normal(0, S), whose scale decides how soon a body with small hidden states learns. Needs the test extras.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForTokenClassification

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.inference.evaluate_task import evaluate_task
from bertcli.inference.predict import Runner
from bertcli.model.task_models import TokenModel
from bertcli.tasks.data import LabeledData, load_labeled_data
from bertcli.tasks.supervised import LabeledBatch
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.optimizer import build_optimizer, learning_rate
from bertcli.training.task_models import new_task_model

BATCH, RATE, STRETCH = 32, 5e-5, 40


class Theirs(nn.Module):
    """transformers' model behind our signature."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        mask = torch.ones_like(ids_BT) if mask_BT is None else mask_BT.long()
        return self.model(input_ids=ids_BT, token_type_ids=segments_BT, attention_mask=mask).logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, help="stop after so many, for a quick look")
    parser.add_argument("--head-std", type=float, help="default: as bertcli finetune draws it")
    options = parser.parse_args()
    task = {"type": "token-classification", "train": "wnut17", "dev": "wnut17-dev", "max_length": 128}
    value = {"output_dir": "unused", "seed": options.seed, "model": str(options.model), "task": task}
    config = check_config(FinetuneConfig, value, "check_finetune_parity")
    tokenizer = Tokenizer.load(options.model)
    data = load_labeled_data(config, tokenizer, print)
    ours = new_task_model(config, options.model, data.task, print)
    assert isinstance(ours, TokenModel)
    theirs: Any = AutoModelForTokenClassification.from_pretrained(
        options.model, num_labels=len(data.task.labels), local_files_only=True
    )
    if options.head_std is not None:
        torch.manual_seed(options.seed)
        nn.init.normal_(ours.classifier.weight, std=options.head_std)
    theirs.classifier.load_state_dict(ours.classifier.state_dict())
    train({"ours": ours, "theirs": Theirs(theirs)}, data, tokenizer, options)


def train(
    sides: dict[str, nn.Module], data: LabeledData, tokenizer: Tokenizer, options: argparse.Namespace
) -> None:
    assert data.dev is not None
    items, source = data.train.items, random.Random(options.seed)
    order = [number for _ in range(options.epochs) for number in source.sample(range(len(items)), len(items))]
    optimizers = {name: build_optimizer(model, (0.9, 0.999), 0.01) for name, model in sides.items()}
    steps = len(order) // BATCH
    torch.manual_seed(options.seed)
    losses: dict[str, list[float]] = {name: [] for name in sides}
    for step in range(min(steps, options.steps or steps)):
        numbers = order[step * BATCH : (step + 1) * BATCH]
        batch = LabeledBatch(tuple(items[number] for number in numbers), tokenizer.pad_id)
        for name, model in sides.items():
            for group in optimizers[name].param_groups:
                group["lr"] = learning_rate(step, RATE, steps // 10, steps, "linear")
            rows = batch.rows
            logits = model.train()(rows.ids_BT, rows.segments_BT, rows.mask_BT)
            loss = data.task.term(logits, batch).loss / data.task.count(batch)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizers[name].step()
            optimizers[name].zero_grad()
            losses[name].append(float(loss))
        if (step + 1) % STRETCH == 0 or step + 1 == steps:
            means = {name: sum(own[-STRETCH:]) / len(own[-STRETCH:]) for name, own in losses.items()}
            print(f"step {step + 1}: {'  '.join(f'{name} {mean:.4f}' for name, mean in means.items())}")
    for name, model in sides.items():
        runner = Runner(model, data.task, tokenizer, torch.device("cpu"), "fp32", BATCH)
        scores, _ = evaluate_task(runner, data.dev)
        print(f"{name}: dev loss {scores.losses['']:.4f}, F1 {100 * scores.metrics['f1']:.2f}")


if __name__ == "__main__":
    main()
