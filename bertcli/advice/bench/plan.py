"""The plan of a run, for estimates and measurements: its model, sizes, steps and tokens."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import nn

from bertcli.advice.bench.probe import KnownDevice, MakeSteps
from bertcli.batches.order import EpochOrder
from bertcli.batches.share import MicroBatch, Share
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import DecidedLoop, LoopRecipe, PretrainRecipe, decided_loop
from bertcli.folders.config_file import new_architecture, read_architecture
from bertcli.folders.lengths import check_length
from bertcli.folders.locate import GENERATOR, resolve_model
from bertcli.model.architecture import Architecture
from bertcli.objectives.base import Task
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.hardware import auto_micro_batch_size
from bertcli.system.memory import StepSizes, count_parameters
from bertcli.system.terminal import say
from bertcli.tasks.data import load_labeled_data
from bertcli.tasks.supervised import LabeledBatch, mean_length
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.resolve import decide_loop
from bertcli.training.task_models import new_task_model, trained_task

RATES = ("dropout", "attention_dropout")


def pretraining_sizes(config: PretrainRecipe, vocab_size: int) -> Architecture:
    """The sizes of the model in `model.init_from`, with the config's dropout; else those of the config.

    Raises `UserError` for a `config.json` that cannot be read.
    """
    objective = OBJECTIVES[config.data.objective]
    if config.model.init_from is None:
        return new_architecture(config.model, vocab_size, objective=objective)
    source, rates = Path(config.model.init_from), dict.fromkeys(RATES, config.model.dropout)
    sizes = replace(read_architecture(source / "config.json"), **rates)
    if not objective.generates:
        return sizes
    return replace(sizes, generator=replace(read_architecture(source / GENERATOR / "config.json"), **rates))


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Attributes:
        training: the training section of the config; the machine has not decided.
        parameters: part -> number of parameters; `trained` of them have gradients and moments.
        length: most tokens of a row; `mean_length`: mean tokens of a labeled row, None if the rows are full.
        predicted: share of the tokens whose word is predicted.
        steps, tokens: number of steps and of real tokens in the full run.
        heldout_tokens: number of tokens that all evaluations read together.
        store_bytes: size of the token store; 0: there is none.
        kept: number of kept checkpoints; `models`: number of further folders, which hold only weights.
        build: a function that builds the model on the CPU.
        make_steps: a function that makes steps of the run, or similar ones.
        given: lines on assumptions.
    """

    kind: str
    output_dir: str
    training: LoopRecipe
    architecture: Architecture
    parameters: dict[str, int]
    trained: int
    length: int
    mean_length: float | None
    predicted: float
    steps: int
    tokens: float
    heldout_tokens: float
    store_bytes: float
    kept: int
    models: int
    task: Task
    build: Callable[[], nn.Module]
    make_steps: MakeSteps
    given: list[str]
    joint_rows: int | None = None
    """The argument of `training.resolve.decide_loop`."""


def decide_here(plan: Plan) -> DecidedLoop:
    """The training section of the run on this machine. Raises as `training.resolve.decide_loop`."""
    return decide_loop(
        plan.training,
        plan.architecture,
        plan.length,
        tokens=plan.tokens,
        predicted=plan.predicted,
        mean_length=plan.mean_length,
        joint_rows=plan.joint_rows,
    )


def decide_for(plan: Plan, known: KnownDevice) -> DecidedLoop:
    """The training section that `decide_here` would give on another device."""
    training = plan.training
    precision = known.precision if training.precision == "auto" else training.precision
    rows = training.micro_batch_size
    if rows == "auto":
        sizes = StepSizes(
            rows=1,
            length=plan.length,
            predicted=plan.predicted,
            half=precision != "fp32",
            checkpointing=training.activation_checkpointing,
            on_cpu=False,
        )
        rows = auto_micro_batch_size(
            plan.architecture,
            sizes=sizes,
            batch_size=training.largest_batch,
            device=torch.device("cuda"),
            memory=known.memory,
        )
    decided = {"precision": precision, "micro_batch_size": min(rows, training.largest_batch)}
    return decided_loop(training, decided | {"compile": training.compile is True})


def plan_finetuning(config: FinetuneConfig, report: Callable[[str], None] = say) -> Plan:
    """The plan of a fine-tuning run. Raises `UserError` for a model or labeled files that cannot be used."""
    source = Path(resolve_model(config.model))
    check_length(source, config.task.max_length, "task.max_length")
    tokenizer = Tokenizer.load(source)
    data = load_labeled_data(config, tokenizer, report)
    model = new_task_model(config, source, data.task.labels, say=report)
    training, items = config.training, data.train.items
    lengths_N = np.array([item.length for item in items])

    def make_steps(batch_size: int, rows: int) -> Iterator[Sequence[MicroBatch]]:
        """Steps that begin with the longest rows, whose batch takes the most memory."""
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
