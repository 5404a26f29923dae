"""The schema of a pretraining config: one frozen class per section, one field per key, with its default.

A field exists only if code reads it (`tests/config/test_reads.py` runs the code and records it). Checks of
one section are in its class; checks across sections are in `PretrainConfig`.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, Never, Self

from pydantic import Field, model_validator

from bertcli.config import MOST, MOST_TOKENS
from bertcli.config.corpus import CleanConfig, CorpusConfig
from bertcli.config.model import ModelConfig
from bertcli.config.section import (
    AUTO,
    DECAY_SHARE,
    DEFAULT_SEED,
    Auto,
    ByMachine,
    ByRecipe,
    Count,
    DistillationConfig,
    LocalPath,
    LoopConfig,
    Positive,
    Probability,
    Rows,
    Section,
    Seed,
    Tokens,
    ends,
    refuse_other_kind,
)
from bertcli.families.family import TokenizerKind
from bertcli.objectives.registry import ObjectiveName


class TokenizerConfig(Section, Generic[ByRecipe]):
    """An existing vocabulary, or the kind, size and normalization of the one to train."""

    path: LocalPath | None = None
    """An existing vocab.txt, tokenizer.json or model folder; null: a tokenizer is trained on the corpus."""
    kind: TokenizerKind | Auto = AUTO
    """Kind of the tokenizer to train. auto: WordPiece for bert, distilbert and electra, Unigram for albert
    and deberta-v3, else byte-level BPE. Unigram needs the extra `unigram`."""
    vocab_size: Annotated[int, Field(ge=6, le=MOST_TOKENS)] | ByRecipe = AUTO
    """Number of entries in the vocabulary. auto: from the size of the text and its number of distinct
    characters."""
    lowercase: bool | ByRecipe = AUTO
    """Whether text is lowercased. auto: true for bert, distilbert, electra and albert."""
    strip_accents: bool | None = None
    """Whether letters lose their marks: é becomes e, as in BERT-uncased, and Hindi and Thai lose vowels.

    null: false for a vocabulary trained here; for a given vocab.txt, the value of `lowercase`, as in BERT. A
    tokenizer.json has its own setting.
    """

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.path is not None and self.kind != AUTO:
            raise ValueError("kind is for a vocabulary that is trained here; that of path has its own")
        return self

    def strips_accents(self) -> bool:
        """The effective `strip_accents` of a vocabulary trained here, or of a bare vocab.txt."""
        if self.strip_accents is not None:
            return self.strip_accents
        return self.lowercase is True and self.path is not None


MASK_SPLIT = (0.8, 0.1, 0.1)
"""Shares of masked tokens: [MASK], a random token, unchanged (Devlin et al. 2019, section 3.1)."""


Share = Annotated[float, Field(gt=0.0, lt=1.0)]
Steps = Annotated[int, Field(ge=0, le=MOST)]


class DataConfig(Section, Generic[ByRecipe, ByMachine]):
    """Sentence pairs and masks (Devlin et al. 2019, section 3.1)."""

    objective: ObjectiveName | ByRecipe = AUTO
    """What the model learns. mlm: masked words; mlm+nsp: also whether text B follows text A; mlm+sop: also
    whether A and B are swapped; rtd: which words a generator replaced. auto: mlm+nsp for bert, mlm+sop for
    albert, rtd for electra and deberta-v3, else mlm."""
    max_length: Tokens = 128
    """Tokens in a row, [CLS] and [SEP] included."""
    short_pair_probability: Probability = 0.1
    """Share of the rows that are cut to a random length (Devlin et al. 2019, appendix A.2)."""
    mask_rate: Share | tuple[Share, Share] | ByRecipe = AUTO
    """Share of the tokens that are predicted; [start, end]: it moves over `training.ramp_steps`. auto: 0.4,
    so that the model learns more from each row (Wettig et al. 2023); 0.3 for modernbert; 0.15 with
    `init_from` or `distillation`."""
    mask_split: tuple[Probability, Probability, Probability] | ByRecipe = AUTO
    """Shares of the chosen tokens that become [MASK], become a random token, or stay unchanged. auto: [0.8,
    0.1, 0.1]; with rtd, [0.85, 0, 0.15] for electra and [1, 0, 0] for deberta-v3."""
    masking: Literal["token", "word", "span"] = "token"
    """Unit that is chosen as a whole: a token, all pieces of a word, or a span of one to three words (Lan et
    al. 2020, section 4.1)."""
    workers: Annotated[int, Field(ge=0, le=1_024)] | ByMachine = AUTO
    """Number of processes that make batches. auto: none on a CPU, up to 4 for a GPU."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if isinstance(self.mask_split, tuple) and abs(sum(self.mask_split) - 1.0) > 1e-6:
            raise ValueError(f"mask_split must add up to 1, got {sum(self.mask_split):g}")
        return self


DEFAULT_STEPS = 1000
RTD_WEIGHT = 50.0


class TrainingConfig(LoopConfig[ByRecipe, ByMachine], Generic[ByRecipe, ByMachine]):
    """The optimizer's steps of a pretraining run: how many, how large, how fast."""

    steps: Count | None = None
    """Number of optimizer steps. null: the steps of `epochs`, or 1,000 if that is null too."""
    epochs: Positive | None = None
    """Number of passes over the tokens of the corpus; replaces `steps`."""
    batch_size: Rows | tuple[Rows, Rows] | ByRecipe = AUTO
    """Rows per optimizer step; [start, end]: it moves over `ramp_steps`. auto: 32 in a short run, up to 256
    in a long one."""
    warmup_steps: Steps | ByRecipe = AUTO
    """Number of steps in which the learning rate rises. auto: 8 % of the steps, at most 10,000."""
    decay_share: Share = DECAY_SHARE
    """Share of the steps in which the learning rate falls, for the schedule stable-decay."""
    ramp_steps: Count | ByMachine = AUTO
    """Number of steps in which `batch_size` and `data.mask_rate` move linearly from start to end; then they
    stay. auto: the steps of the run; a resume with more steps keeps it."""
    rtd_weight: Positive = RTD_WEIGHT
    """Weight of the loss of replaced words; the loss of the generator's masked words has the weight 1 (Clark
    et al. 2020)."""

    @property
    def largest_batch(self: TrainingConfig[Never, ByMachine]) -> int:
        return max(ends(self.batch_size))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.steps is not None and self.epochs is not None:
            raise ValueError("give steps or epochs, not both")
        return self


class EvaluationConfig(Section):
    """Evaluation on held-out text: how often, and on how much of it."""

    every_steps: Count = 100
    """Steps between two evaluations; an evaluation also follows the last step."""
    batches: Count = 20
    """Most batches that an evaluation reads. A text that fits is read once, and its pairs in batches of their
    own; from a larger text, rows are drawn. Several sources share this number."""


class CheckpointConfig(Section):
    """Checkpoints: how often they are saved, and how many are kept."""

    every_steps: Count = 500
    """Steps between two checkpoints; a checkpoint also follows the last step."""
    keep_last: Count = 3
    """Number of latest checkpoints that are kept; older ones are deleted."""
    keep_best: bool = False
    """Save the model with the lowest held-out loss at the end, not the last one; each better model is written
    when it is evaluated. This is not possible with the schedule stable-decay, and cannot change on a
    resume."""


TrackerName = Literal["tensorboard", "mlflow", "wandb", "trackio"]


class LoggingConfig(Section):
    """Logs of the training steps, and the report of the run."""

    every_steps: Count = 10
    """Steps between two lines of `metrics.jsonl`."""
    trackers: tuple[TrackerName, ...] = ()
    """Trackers that follow the run: tensorboard, mlflow, wandb, trackio, each with the extra of its name.
    They write into `trackers/` in `output_dir`; a tracker that fails never ends the run."""
    report: bool = False
    """Whether the run writes `report.html` at its end, as `bertcli report` does."""


class PretrainConfig(Section, Generic[ByRecipe, ByMachine]):
    """A pretraining run."""

    output_dir: LocalPath
    """The folder of the run: config, metrics, store, checkpoints and model."""
    seed: Seed = DEFAULT_SEED
    """Seed of weights, order and masks; the same seed gives the same run."""
    corpus: CorpusConfig
    tokenizer: TokenizerConfig[ByRecipe] = TokenizerConfig()
    data: DataConfig[ByRecipe, ByMachine] = DataConfig()
    model: ModelConfig[ByRecipe] = ModelConfig()
    training: TrainingConfig[ByRecipe, ByMachine] = TrainingConfig()
    distillation: DistillationConfig | None = None
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    logging: LoggingConfig = LoggingConfig()
    clean: CleanConfig = CleanConfig()

    _check_kind = model_validator(mode="before")(refuse_other_kind("corpus", "task", "bertcli finetune"))

    @property
    def keeps_best(self) -> bool:
        """True if evaluations choose the model that is kept."""
        return self.checkpoint.keep_best

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.data.max_length > self.model.positions and self.model.init_from is None:
            raise ValueError(
                f"data.max_length ({self.data.max_length}) is longer than model.max_positions "
                f"({self.model.positions})"
            )
        if self.corpus.general is not None and self.model.init_from is None:
            raise ValueError("corpus.general needs model.init_from: a new model has nothing to forget")
        if self.training.decay_share != DECAY_SHARE and self.training.schedule != "stable-decay":
            raise ValueError("training.decay_share is for training.schedule: stable-decay; leave it out")
        if self.distillation is not None and self.tokenizer.path is not None:
            raise ValueError(
                "give tokenizer.path or distillation, not both: the student has its teacher's tokenizer"
            )
        if self.tokenizer.path is not None and self.model.init_from is not None:
            raise ValueError(
                "give tokenizer.path or model.init_from, not both: a model comes with its tokenizer"
            )
        return self
