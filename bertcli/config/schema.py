"""The schema of a pretraining config: one frozen class per section, one field per key, with its default.

A field exists only if code reads it (`tests/config/test_reads.py` runs the code and records it). Checks of
one section are in its class; checks across sections are in `PretrainConfig`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from bertcli.config.languages import language_code
from bertcli.config.model import ModelConfig
from bertcli.config.section import (
    AUTO,
    MOST,
    MOST_TOKENS,
    Auto,
    BadBytes,
    Count,
    Decided,
    Decoding,
    FilePath,
    Paths,
    Positive,
    Probability,
    Rows,
    Section,
    Tokens,
    ends,
    own_encoding,
    refuse_other_kind,
)
from bertcli.config.shared import DistillationConfig, LoopConfig
from bertcli.families.family import Objective, TokenizerKind


class CorpusConfig(Section):
    """The text, and how it is divided into documents and sentences."""

    files: Paths
    """Paths, folders, globs, or the name of a bundled sample."""
    format: Literal["text", "sentences", "jsonl", "parquet"] = "text"
    """text: a paragraph a line; sentences: a sentence a line, and a blank line ends a document; jsonl: JSON
    objects or texts, one a line or in a list, each a document; parquet: a document a row."""
    text_key: str = "text"
    """The key (jsonl) or column (parquet) that holds a document."""
    document: Literal["blank-line", "file"] = "blank-line"
    """What ends a document in `text`."""
    join_lines: bool = False
    """For hard-wrapped text: all lines up to a blank one are a paragraph."""
    language: str = "en"
    """ISO 639 code, for the sentence splitter; stored in its shortest form (de for deu or de-AT)."""
    encoding: str = "utf-8"
    """Of the text files, as Python names it. With utf-8, a file with the byte order mark of UTF-16 or UTF-32
    is read as that."""
    encodings: dict[str, str] = Field(default={})
    """Files in other encodings: a path or pattern -> its encoding; of several that fit, the first holds."""
    bad_bytes: BadBytes = "refuse"
    """Bytes that are not in the encoding: refuse ends the run; replace reads U+FFFD in their place; skip-line
    leaves out their lines. Both name and count these lines first."""
    heldout_fraction: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    """Share of the documents kept for evaluation; 0 keeps none and evaluates nothing."""
    general: Paths | None = None
    """With `model.init_from`: text in the form of `files`, on which the run shows at its end what the model
    forgot; null: a bundled sample of English books."""
    store: FilePath | None = None
    """Folder of the token store; null: `output_dir/store`."""

    def decoding(self, path: Path) -> Decoding:
        """How this file of the corpus is read."""
        return Decoding(own_encoding(path, self.encodings) or self.encoding, self.bad_bytes)

    @field_validator("language", mode="before")
    @classmethod
    def _language_code(cls, value: Any) -> Any:
        return language_code(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.join_lines and self.document != "file":
            raise ValueError(
                "join_lines: true needs document: file: a blank line then ends a paragraph, not a document"
            )
        if self.join_lines and self.format != "text":
            raise ValueError(f"join_lines is for format: text, not {self.format}")
        return self


class TokenizerConfig(Section):
    """An existing vocabulary, or the kind, size and normalization of the one to train."""

    path: FilePath | None = None
    """An existing vocab.txt, tokenizer.json or model folder; null: train one on the corpus."""
    kind: Decided[TokenizerKind, Field()] = AUTO
    """auto: the family's: WordPiece for bert, distilbert and electra, Unigram for albert and deberta-v3, else
    byte-level BPE. Unigram needs the extra `unigram`."""
    vocab_size: Decided[int, Field(ge=6, le=MOST_TOKENS)] = AUTO
    """auto: by the size of the text and the number of its characters."""
    lowercase: Decided[bool, Field()] = AUTO
    """auto: true for bert, distilbert, electra and albert."""
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
        return self.lowercase and self.path is not None


MASK_SPLIT = (0.8, 0.1, 0.1)
"""Of masked tokens: the mask, a random token, unchanged (Devlin et al. 2019, section 3.1)."""


Share = Annotated[float, Field(gt=0.0, lt=1.0)]


class DataConfig(Section):
    """Sentence pairs and masks (Devlin et al. 2019, section 3.1)."""

    objective: Decided[Objective, Field()] = AUTO
    """Masked words (mlm), also with the label of a pair: whether B follows A (nsp), or A and B are swapped
    (sop); or the words that a generator replaced (rtd). auto: mlm+nsp for bert, mlm+sop for albert, rtd for
    electra and deberta-v3, else mlm."""
    max_length: Tokens = 128
    """Tokens in a row, [CLS] and [SEP] included."""
    short_steps: Decided[int, Field(ge=0, le=MOST)] = AUTO
    """The number of first steps with rows of `short_length` tokens: attention learns faster on them. auto:
    enough for that, at most four steps in ten; 0 where rows are short anyway, or with `init_from`."""
    short_length: Tokens = 32
    """Tokens of a row in the first `short_steps`."""
    short_pair_probability: Probability = 0.1
    """Share of the rows that are cut to a random length (Devlin et al. 2019, appendix A.2)."""
    mask_rate: Decided[Share | tuple[Share, Share], Field()] = AUTO
    """Of the tokens, to predict; or [start, end]: it moves over `training.ramp_steps`. auto: 0.4 (Wettig et
    al. 2023), so that the model learns more from each row; modernbert 0.3; 0.15 with `init_from` and with
    `distillation`."""
    mask_split: Decided[tuple[Probability, Probability, Probability], Field()] = AUTO
    """Of the chosen tokens: replaced by [MASK], by a random token, left unchanged. auto: [0.8, 0.1, 0.1];
    with rtd, [0.85, 0, 0.15] for electra and [1, 0, 0] for deberta-v3."""
    masking: Literal["token", "word", "span"] = "token"
    """What is chosen as a whole: a token, all pieces of a word, or one to three words (Lan et al. 2020,
    section 4.1)."""
    workers: Annotated[int, Field(ge=0, le=1_024)] | Auto = "auto"
    """Processes that make batches. auto: none on a CPU, up to 4 for a GPU."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mask_split != AUTO and abs(sum(self.mask_split) - 1.0) > 1e-6:
            raise ValueError(f"mask_split must add up to 1, got {sum(self.mask_split):g}")
        if self.short_steps not in (0, AUTO) and self.short_length > self.max_length:
            raise ValueError(
                f"short_length ({self.short_length}) is longer than max_length ({self.max_length})"
            )
        return self


DEFAULT_STEPS = 1000
DECAY_SHARE = 0.1
RTD_WEIGHT = 50.0


class TrainingConfig(LoopConfig):
    """The optimizer's steps of a pretraining run: how many, how large, how fast."""

    steps: Count | None = None
    """null and no epochs: `DEFAULT_STEPS`."""
    epochs: Positive | None = None
    """Instead of steps: how often the tokens of the corpus are read."""
    batch_size: Decided[Rows | tuple[Rows, Rows], Field()] = AUTO
    """Rows per optimizer step; or [start, end]: it moves over `ramp_steps`. auto: 32 in a short run, up to
    256 in a long one."""
    warmup_steps: Decided[int, Field(ge=0, le=MOST)] = AUTO
    """auto: 8 % of the steps, at most 10,000."""
    decay_share: Share = DECAY_SHARE
    """With stable-decay, the share of the steps in which the rate falls."""
    ramp_steps: Decided[int, Field(ge=1, le=MOST)] = AUTO
    """In which `batch_size` and `data.mask_rate` move from start to end, linearly; then they stay. auto: the
    steps of the run; a resume with more steps keeps it."""
    rtd_weight: Positive = RTD_WEIGHT
    """Of the loss of replaced words beside that of the generator's masked words (Clark et al. 2020)."""

    @property
    def largest_batch(self) -> int:
        return max(ends(self.batch_size))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.steps is not None and self.epochs is not None:
            raise ValueError("give steps or epochs, not both")
        return self


class EvaluationConfig(Section):
    """When the model is evaluated on held-out text, and on how much of it."""

    every_steps: Count = 100
    """An evaluation follows each of these many steps, and the last step."""
    batches: Count = 20
    """Batches that an evaluation reads, at most. A text that fits is read once, its pairs apart; of a larger
    one, rows are drawn."""


class CheckpointConfig(Section):
    """When checkpoints are saved, and how many are kept."""

    every_steps: Count = 500
    """A checkpoint follows each of these many steps, and the last step."""
    keep_last: Count = 3
    """The number of checkpoints that are kept; older ones are deleted."""
    keep_best: bool = False
    """Save the model with the lowest held-out loss at the end, not the last one; each better model is written
    when it is evaluated. Not with the schedule stable-decay; it cannot change on a resume."""


class LoggingConfig(Section):
    """How often a step is logged, and where else."""

    every_steps: Count = 10
    """A line of `metrics.jsonl` for each of these many steps."""
    tensorboard: bool = False
    """Write events for TensorBoard too; needs the extra `tensorboard`."""
    report: bool = False
    """Whether the run writes `report.html` at its end, as `bertcli report` does."""


class PretrainConfig(Section):
    """A pretraining run."""

    output_dir: FilePath
    """The folder of the run: config, metrics, store, checkpoints and model."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 42
    """Decides weights, order and masks; the same seed gives the same run."""
    corpus: CorpusConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    distillation: DistillationConfig | None = None
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    logging: LoggingConfig = LoggingConfig()

    _check_kind = model_validator(mode="before")(refuse_other_kind("corpus", "task", "bertcli finetune"))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.data.max_length > self.model.positions and self.model.init_from is None:
            raise ValueError(
                f"data.max_length ({self.data.max_length}) is longer than model.max_positions "
                f"({self.model.positions})"
            )
        if self.data.short_steps not in (0, AUTO) and self.model.init_from is not None:
            raise ValueError(
                "data.short_steps is for a model from random weights: that of model.init_from has already "
                "learned its positions"
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
