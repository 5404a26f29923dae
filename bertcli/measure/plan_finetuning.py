"""A fine-tuning config -> the plan of its run. Its labeled files are read, its model is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from bertcli.config.finetune import FinetuneConfig
from bertcli.data.epochs import EpochOrder
from bertcli.data.share import MicroBatch, Share
from bertcli.hf.lengths import check_length
from bertcli.hf.locate import resolve_model
from bertcli.measure.plan import Plan
from bertcli.memory.parameters import count_parameters
from bertcli.runs.new_task_model import new_task_model
from bertcli.runs.task_teacher import trained_task
from bertcli.tasks.data import load_labeled_data
from bertcli.tasks.supervised import LabeledBatch, mean_length
from bertcli.terminal import say
from bertcli.text.tokenizer import Tokenizer


def plan_finetuning(config: FinetuneConfig, report: Callable[[str], None] = say) -> Plan:
    """The plan. Raises `UserError` for a model or labeled files that cannot be used."""
    source = Path(resolve_model(config.model))
    check_length(source, config.task.max_length, "task.max_length")
    tokenizer = Tokenizer.load(source)
    data = load_labeled_data(config, tokenizer, report)
    model = new_task_model(config, source, data.task.labels, say=report)
    training, items = config.training, data.train.items
    lengths_N = np.array([item.length for item in items])

    def make_steps(batch_size: int, rows: int) -> Iterator[Sequence[MicroBatch]]:
        """The longest rows first: their batch takes the most memory."""
        order = EpochOrder(len(items), batch_size, config.training_seed)
        longest = np.argsort(-lengths_N, kind="stable")[:batch_size]
        for numbers in chain([longest], (order[step] for step in range(10**9))):
            batch = LabeledBatch(tuple(items[i] for i in numbers), tokenizer.pad_id)
            yield batch.micro_batches(Share(rows))

    per_epoch = math.ceil(len(items) / training.batch_size)
    steps = max(1, round(training.epochs * per_epoch))
    evaluations = math.ceil(steps / (config.evaluation.every_steps or per_epoch))
    dev_tokens = sum(item.length for item in data.dev.items) if data.dev else 0
    seeds = len(config.seeds or [config.seed])
    saves = math.ceil(steps / (config.checkpoint.every_steps or per_epoch))
    return Plan(
        kind="fine-tuning",
        output_dir=config.output_dir,
        training=training,
        architecture=model.architecture,
        parameters=count_parameters(model),
        trained=sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        length=int(lengths_N.max()),
        mean_length=mean_length(items),
        predicted=0.0,
        steps=seeds * steps,
        tokens=seeds * training.epochs * sum(row.length for item in items for row in item.rows),
        heldout_tokens=seeds * evaluations * dev_tokens,
        store_bytes=0.0,
        kept=seeds * min(config.checkpoint.keep_last, saves),
        models=seeds * (2 if data.dev else 1),
        task=trained_task(config, data.task, tokenizer),
        build=lambda: model,
        make_steps=make_steps,
        given=[],
        joint_rows=data.joint_rows(training.batch_size),
    )
