"""The schema of a pretraining config: one frozen class per section, one field per key, with its default.

A field exists only if code reads it (`tests/config/test_reads.py` runs the code and records it). Checks of
one section are in its class; checks across sections are in `PretrainConfig`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from bertcli.config.languages import language_code
from bertcli.config.presets import HEAD_SIZE, PRESETS

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Auto = Literal["auto"]

AUTO: Any = "auto"
"""The default of a `Decided` field."""
if TYPE_CHECKING:
    from typing import Annotated as Decided
else:

    class Decided:
        """`Decided[int, Field(ge=1)]`: in a file a number or `auto`. Code reads the field only after
        `bertcli.runs.recipe` has replaced `auto`; its type there is `int`."""

        def __class_getitem__(cls, items: Any) -> Any:
            return Annotated[items] | Auto


def _kinds(annotation: Any) -> set[Any]:
    """The types in a union or an annotated type."""
    parts = get_args(annotation)
    return {kind for part in parts for kind in _kinds(part)} if parts else {annotation}


class Section(BaseModel):
    """A part of a config: frozen, and strict about keys and types."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool_for_number(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML reads a bare yes or on as true, and Python accepts true as 1."""
        kinds = _kinds(cls.model_fields[info.field_name or ""].annotation)
        if isinstance(value, bool) and kinds & {int, float} and not kinds & {bool, str}:
            raise ValueError(f"expected a number, got {str(value).lower()}")
        return value


def refuse_other_kind(own: str, other: str, command: str) -> Callable[[Any], Any]:
    """A check that refuses a config with the section `other`, of `command`, but without the section `own`."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and other in value and own not in value:
            raise ValueError(f"it has a section {other}, as for {command}; a section {own} was expected")
        return value

    return check


class CorpusConfig(Section):
    """The text, and how it is divided into documents and sentences."""

    files: Annotated[list[str], Field(min_length=1)]
    """Paths, folders, globs, or the name of a bundled sample."""
    format: Literal["text", "sentences", "jsonl", "parquet"] = "text"
    text_key: str = "text"
    """The key (jsonl) or column (parquet) that holds a document."""
    document: Literal["blank-line", "file"] = "blank-line"
    """What ends a document in `text`."""
    join_lines: bool = False
    """For hard-wrapped text: all lines up to a blank one are a paragraph."""
    language: str = "en"
    """ISO 639 code, for the sentence splitter; stored in its shortest form (de for deu or de-AT)."""
    encoding: str = "utf-8"
    heldout_fraction: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    """Share of the documents kept for evaluation; 0 keeps none and evaluates nothing."""
    store: str | None = None
    """Folder of the token store; null: `output_dir/store`."""

    @field_validator("language", mode="before")
    @classmethod
    def _language_code(cls, value: Any) -> Any:
        if value is False:
            raise ValueError("YAML reads a bare no as false; for Norwegian write 'no', in quotes")
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
    """An existing vocabulary, or the size and normalization of the one to train."""

    path: str | None = None
    """An existing vocab.txt, tokenizer.json or model folder; null: train one on the corpus."""
    vocab_size: Decided[int, Field(ge=6)] = AUTO
    """auto: by the size of the text and the number of its characters."""
    lowercase: bool = True
    strip_accents: bool | None = None
    """Whether letters lose their marks: é becomes e, as in BERT-uncased, and Hindi and Thai lose vowels.

    null: false for a vocabulary trained here; for a given vocab.txt, the value of `lowercase`, as in BERT. A
    tokenizer.json has its own setting.
    """

    def strips_accents(self) -> bool:
        """The effective `strip_accents` of a vocabulary trained here, or of a bare vocab.txt."""
        if self.strip_accents is not None:
            return self.strip_accents
        return self.lowercase and self.path is not None


class DataConfig(Section):
    """Sentence pairs and masks (Devlin et al. 2019, section 3.1)."""

    objective: Literal["mlm+nsp", "mlm"] = "mlm+nsp"
    max_length: Annotated[int, Field(ge=16)] = 128
    """Tokens in a row, [CLS] and [SEP] included."""
    short_steps: Decided[int, Field(ge=0)] = AUTO
    """The number of first steps with rows of `short_length` tokens: attention learns faster on them. auto:
    enough for that, at most four steps in ten; 0 where rows are short anyway, or with `init_from`."""
    short_length: Annotated[int, Field(ge=16)] = 32
    short_pair_probability: Probability = 0.1
    mask_rate: Decided[float, Field(gt=0.0, lt=1.0)] = AUTO
    """auto: 0.4 (Wettig et al. 2023), so that the model learns more from each row; 0.15 with `init_from`."""
    mask_split: tuple[Probability, Probability, Probability] = (0.8, 0.1, 0.1)
    """Of the chosen tokens: replaced by [MASK], by a random token, left unchanged."""
    whole_word: bool = False
    workers: Annotated[int, Field(ge=0)] | Auto = "auto"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if abs(sum(self.mask_split) - 1.0) > 1e-6:
            raise ValueError(f"mask_split must add up to 1, got {sum(self.mask_split):g}")
        if self.short_steps not in (0, AUTO) and self.short_length > self.max_length:
            raise ValueError(
                f"short_length ({self.short_length}) is longer than max_length ({self.max_length})"
            )
        return self


class ModelConfig(Section):
    """A preset, or the sizes one by one; a given size replaces that of the preset."""

    preset: Literal["tiny", "mini", "small", "medium", "base", "large"] | None = "base"
    """null: all sizes are given one by one."""
    layers: Count | None = None
    hidden: Count | None = None
    heads: Count | None = None
    """null: hidden / 64."""
    feed_forward: Count | None = None
    """null: 4 x hidden."""
    max_positions: Annotated[int, Field(ge=16)] = 512
    dropout: Decided[float, Field(ge=0.0, lt=1.0)] = AUTO
    """Of hidden states and of attention probabilities. auto: 0 in a run that is too short to overfit, else
    0.1, as with `init_from`."""
    init_from: str | None = None
    """A model folder: the run starts with its weights, sizes and tokenizer; no key may contradict them."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.preset is None and None in (self.layers, self.hidden) and self.init_from is None:
            raise ValueError("preset: null needs layers and hidden")
        _, hidden, heads, _ = self.sizes()
        if hidden % heads and self.init_from is None:
            raise ValueError(f"heads must divide hidden: {hidden} / {heads} leaves {hidden % heads}")
        return self

    def sizes(self) -> tuple[int, int, int, int]:
        """(layers, hidden, heads, feed_forward): the given sizes, else those of the preset."""
        layers, hidden = PRESETS[self.preset or "base"]
        layers, hidden = self.layers or layers, self.hidden or hidden
        return layers, hidden, self.heads or max(1, hidden // HEAD_SIZE), self.feed_forward or 4 * hidden


class LoopConfig(Section):
    """The optimizer's steps, in pretraining and in fine-tuning."""

    batch_size: Decided[int, Field(ge=1)] = AUTO
    """Rows per optimizer step. auto: 32 in a short run, up to 256 in a long one."""
    micro_batch_size: Count | Auto = "auto"
    """Rows at once on the device. auto: as many as fit and gain speed."""
    learning_rate: Decided[float, Field(gt=0.0)] = AUTO
    """The peak. auto: by the model's width and depth."""
    betas: tuple[Annotated[float, Field(ge=0.0, lt=1.0)], Annotated[float, Field(ge=0.0, lt=1.0)]] = (
        0.9,
        0.999,
    )
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    max_grad_norm: Annotated[float, Field(gt=0.0)] = 1.0
    max_bad_steps: Count = 10
    """Consecutive non-finite steps before the run stops."""
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    device: str = "auto"
    """auto, cpu, cuda, or cuda:N."""
    compile: bool | Auto = "auto"
    """auto: on a GPU, if the run is long enough to save more time than compiling takes."""
    activation_checkpointing: bool = False
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """On several ranks: a copy of the model on each, or a part of it."""


DEFAULT_STEPS = 1000


class TrainingConfig(LoopConfig):
    """The optimizer's steps of a pretraining run: how many, how large, how fast."""

    steps: Count | None = None
    """null and no epochs: `DEFAULT_STEPS`."""
    epochs: Annotated[float, Field(gt=0.0)] | None = None
    """Instead of steps: how often the tokens of the corpus are read."""
    warmup_steps: Decided[int, Field(ge=0)] = AUTO
    """auto: 8 % of the steps, at most 10,000."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.steps is not None and self.epochs is not None:
            raise ValueError("give steps or epochs, not both")
        return self


class EvaluationConfig(Section):
    """When the model is evaluated on held-out text, and on how much of it."""

    every_steps: Count = 100
    batches: Count = 20
    """At most."""


class CheckpointConfig(Section):
    """When checkpoints are saved, and how many are kept."""

    every_steps: Count = 500
    keep_last: Count = 3


class LoggingConfig(Section):
    """How often a step is logged, and where else."""

    every_steps: Count = 10
    tensorboard: bool = False


class PretrainConfig(Section):
    """A pretraining run."""

    output_dir: str
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 42
    corpus: CorpusConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    logging: LoggingConfig = LoggingConfig()

    _check_kind = model_validator(mode="before")(refuse_other_kind("corpus", "task", "bertcli finetune"))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.data.max_length > self.model.max_positions and self.model.init_from is None:
            raise ValueError(
                f"data.max_length ({self.data.max_length}) is longer than model.max_positions "
                f"({self.model.max_positions})"
            )
        if self.data.short_steps not in (0, AUTO) and self.model.init_from is not None:
            raise ValueError(
                "data.short_steps is for a model from random weights: that of model.init_from has already "
                "learned its positions"
            )
        if self.tokenizer.path is not None and self.model.init_from is not None:
            raise ValueError(
                "give tokenizer.path or model.init_from, not both: a model comes with its tokenizer"
            )
        return self
