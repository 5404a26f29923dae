"""What a fine-tuning config may say: one frozen class per section, one field per key, with its default."""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Self

from pydantic import Field, model_validator

from bertcli.config.schema import LoggingConfig
from bertcli.config.section import (
    DEFAULT_SEED,
    MOST,
    ByMachine,
    ByRecipe,
    Count,
    LocalPath,
    LoopConfig,
    Positive,
    Rows,
    Section,
    Seed,
    Weight,
    refuse_other_kind,
)
from bertcli.config.task import TaskConfig
from bertcli.tasks.registry import import_task


class FinetuneDistillationConfig(Section):
    """The model learns the answers of a fine-tuned teacher besides the labels (Hinton et al. 2015)."""

    teacher: LocalPath
    """A model that `bertcli finetune` made from the same task, with the tokenizer of `model`."""
    temperature: Positive = 2.0
    """Divisor of the logits of student and teacher; a predicted number (regression) is not divided."""
    weights: tuple[Weight, Weight] = (1.0, 1.0)
    """Weights of two losses: the teacher's answers, and the labels."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not any(self.weights):
            raise ValueError("weights: both are 0, so that nothing is learned; give one that is larger")
        return self


class FinetuneTrainingConfig(LoopConfig[ByRecipe, ByMachine], Generic[ByRecipe, ByMachine]):
    """The optimizer's steps of a fine-tuning run (Devlin et al. 2019, appendix A.3)."""

    epochs: Positive = 3.0
    """Number of passes over the rows; a fraction such as 0.5 is possible."""
    batch_size: Rows = 32
    """Rows per optimizer step."""
    warmup_ratio: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    """Share of the steps in which the learning rate rises."""
    early_stopping: Count | None = None
    """Number of evaluations in a row without a better score after which the run stops; null: it never stops
    early."""
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Learning rate of each layer as a share of the rate of the layer above it (Howard and Ruder 2018,
    section 3.2). Not for ALBERT, whose layers share their weights."""
    keep_layers: Count | None = None
    """Number of layers that the model starts with, evenly spaced among its own; null: all."""
    freeze_layers: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Number of lowest layers whose weights stay fixed; if it is over 0, the embeddings stay fixed too. Not
    for ALBERT, whose layers share their weights."""

    @property
    def largest_batch(self) -> int:
        return self.batch_size

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.schedule == "stable-decay":
            raise ValueError(
                "schedule: stable-decay is for bertcli pretrain; take linear, cosine or constant"
            )
        return self


class FinetuneEvaluationConfig(Section):
    """Evaluation on the dev data."""

    every_steps: Count | None = None
    """Steps between two evaluations; null: an evaluation follows each epoch."""


class FinetuneCheckpointConfig(Section):
    """Checkpoints: how often they are saved, and how many are kept."""

    every_steps: Count | None = None
    """Steps between two checkpoints; null: a checkpoint follows each epoch, but at least
    20 steps after the last one."""
    keep_last: Count = 1
    """Number of latest checkpoints that are kept, besides the best one."""


class FinetuneConfig(Section, Generic[ByRecipe, ByMachine]):
    """A fine-tuning run."""

    output_dir: LocalPath
    """The folder of the run: config, metrics, checkpoints and model."""
    seed: Seed = DEFAULT_SEED
    """Seed of head, order and dropout, and of the rows that `task.dev_fraction` splits off."""
    seeds: Annotated[list[Seed], Field(min_length=1)] | None = None
    """Seeds of several runs, one run for each; the best run is kept. `seed` then only splits off the dev
    data."""
    folds: Annotated[int, Field(ge=2, le=100)] | None = None
    """Number of parts of the training file, in place of `task.dev`, `task.dev_fraction` and `seeds`. A run
    for each part learns from the others and is evaluated on it, so that every row has an answer of a model
    that did not learn from it. One more run, whose model is kept, learns from all rows, for the median of the
    epochs after which the runs were best. `seed` and the texts divide the rows."""
    fold: Count | None = None
    """The only one of the `folds` that is run, from 1; for instance, each on a machine of its own. null: all
    of them, then the run on all rows."""
    model: LocalPath
    """The model to fine-tune: a run folder, a model folder, any Hugging Face folder of a supported family, or
    a hub id."""
    task: TaskConfig
    training: FinetuneTrainingConfig[ByRecipe, ByMachine] = FinetuneTrainingConfig()
    distillation: FinetuneDistillationConfig | None = None
    evaluation: FinetuneEvaluationConfig = FinetuneEvaluationConfig()
    checkpoint: FinetuneCheckpointConfig = FinetuneCheckpointConfig()
    logging: LoggingConfig = LoggingConfig()

    @property
    def parts(self) -> Mapping[str, Mapping[str, Any]]:
        """The runs of seeds or folds: the name of the folder -> its own keys; empty: there is one run."""
        if self.seeds is not None:
            return {f"seed-{seed}": {"seeds": [seed]} for seed in self.seeds}
        if self.folds is None or self.fold is not None:
            return {}
        return {f"fold-{fold}": {"fold": fold} for fold in range(1, self.folds + 1)}

    _check_kind = model_validator(mode="before")(refuse_other_kind("task", "corpus", "bertcli pretrain"))

    @property
    def keeps_best(self) -> bool:
        """True if evaluations choose the model that is kept."""
        return self.task.has_dev or self.folds is not None

    @property
    def training_seed(self) -> int:
        """The seed of head, order and dropout in a run with one seed."""
        return self.seeds[0] if self.seeds else self.seed

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.seeds is not None and len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds: a seed is given twice")
        self._check_folds()
        if self.training.early_stopping and not (self.task.has_dev or self.folds):
            raise ValueError("training.early_stopping needs task.dev, task.dev_fraction or folds")
        if self.distillation is not None and import_task(self.task.type).head is None:
            raise ValueError(f"distillation is for tasks with answers, not for {self.task.type}")
        if self.distillation is not None and self.task.few_shot:
            raise ValueError("distillation: not with task.few_shot; a teacher answers any number of texts")
        return self

    def _check_folds(self) -> None:
        """Raise `ValueError` for keys that contradict `folds`, or that nothing uses without it."""
        task = self.task
        others = {"task.dev": task.dev, "task.dev_fraction": task.dev_fraction, "seeds": self.seeds}
        given = [key for key, value in others.items() if value is not None]
        if self.folds is not None and given:
            raise ValueError(f"folds takes the place of {' and '.join(given)}: leave out one or the other")
        if self.folds is not None and task.is_plain_text:
            raise ValueError("folds: plain text has no right answers to evaluate by; leave it out")
        if self.fold is not None and self.fold > (self.folds or 0):
            raise ValueError(f"fold: {self.fold} is over the number of folds ({self.folds or 'none'})")
        if task.group is not None and task.dev_fraction is None and self.folds is None:
            raise ValueError("task.group: nothing is split without task.dev_fraction or folds; leave it out")
