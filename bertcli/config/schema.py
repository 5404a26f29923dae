"""The schema of a pretraining config: one frozen class per section, one field per key, with its default.

A field exists only if code reads it (`tests/config/test_reads.py` runs the code and records it). Checks of
one section are in its class; checks across sections are in `PretrainConfig`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Never, Self

from pydantic import Field, field_validator, model_validator

from bertcli.config.languages import language_code
from bertcli.config.limits import MOST, MOST_TOKENS
from bertcli.config.model import ModelConfig
from bertcli.config.section import (
    AUTO,
    AnyPaths,
    Auto,
    BadBytes,
    ByMachine,
    ByText,
    Count,
    Decoding,
    DistillationConfig,
    FilePath,
    LoopConfig,
    Paths,
    Positive,
    Probability,
    Rows,
    Section,
    Tokens,
    Weight,
    ends,
    own_encoding,
    refuse_other_kind,
    value_at,
)
from bertcli.families.family import TokenizerKind
from bertcli.objectives.registry import ObjectiveName


class TextConfig(Section):
    """Text files, and how they are divided into documents and sentences."""

    files: Paths
    """Paths, folders, globs, or the name of a bundled sample."""
    format: Literal["text", "sentences", "jsonl", "parquet"] = "text"
    """Format of the files. text: a paragraph a line; sentences: a sentence a line, and a blank line ends a
    document; jsonl: JSON objects or texts, one a line or in a list, each a document; parquet: a document a
    row."""
    text_key: str = "text"
    """The key (jsonl) or column (parquet) that holds a document."""
    document: Literal["blank-line", "file"] = "blank-line"
    """What ends a document in the format text: a blank line, or the end of the file."""
    join_lines: bool = False
    """True for hard-wrapped text: all lines up to a blank line are one paragraph."""
    language: str = "en"
    """ISO 639 code of the language, for the sentence splitter; stored in its shortest form (de for deu or
    de-AT)."""
    encoding: str = "utf-8"
    """Encoding of the text files, as Python names it. utf-8: a file with the byte order mark of UTF-16 or
    UTF-32 is read in that encoding."""

    @field_validator("language", mode="before")
    @classmethod
    def _language_code(cls, value: Any) -> Any:
        return language_code(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_lines(self) -> Self:
        if self.join_lines and self.document != "file":
            raise ValueError(
                "join_lines: true needs document: file: a blank line then ends a paragraph, not a document"
            )
        if self.join_lines and self.format != "text":
            raise ValueError(f"join_lines is for format: text, not {self.format}")
        return self


class SourceConfig(TextConfig):
    """One of several sources of text. A key that it does not have is that of `corpus`."""

    name: str | None = None
    """Name in messages and reports; null: the first of its files, without folder and suffix."""
    weight: Weight | tuple[Weight, Weight] | None = None
    """Share of the rows, relative to the weights of the other sources; [start, end]: it moves over
    `training.ramp_steps`. null: the share follows from the sizes (`corpus.temperature`)."""


class CorpusConfig(TextConfig):
    """The text, and how it is divided into documents and sentences."""

    files: AnyPaths
    """Paths, folders, globs, or the name of a bundled sample; not with `sources`."""
    sources: tuple[SourceConfig, ...] = ()
    """Several sources in place of `files`, each with a weight of its own."""
    temperature: Probability | tuple[Probability, Probability] = 1.0
    """Shares of sources without weights: in proportion to size ^ temperature. 1: as the text is; 0: all
    alike; [start, end]: it moves over `training.ramp_steps`."""
    encodings: dict[str, str] = Field(default={})
    """Encodings of single files: a path or pattern -> its encoding. The first one that fits a file counts."""
    bad_bytes: BadBytes = "refuse"
    """Treatment of bytes that are not in the encoding. refuse ends the run; replace reads U+FFFD in their
    place; skip-line leaves out their lines. replace and skip-line first name and count these lines."""
    heldout_fraction: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    """Share of the documents that is kept for evaluation; 0: none is kept, and nothing is evaluated."""
    general: Paths | None = None
    """Text in the form of `files`, for a run with `model.init_from`: at its end, the run shows what the model
    forgot of this text. null: a bundled sample of English books."""
    store: FilePath | None = None
    """Folder of the token store; null: `output_dir/store`."""

    def decoding(self, path: Path) -> Decoding:
        """How this file of the corpus is read."""
        return Decoding(own_encoding(path, self.encodings) or self.encoding, self.bad_bytes)

    @property
    def num_sources(self) -> int:
        """The number of sources; 1 for `files`."""
        return max(1, len(self.sources))

    @property
    def source_names(self) -> list[str]:
        """The name of each source; a name that occurs twice, or that is missing, gets a number."""
        names: list[str] = []
        for number, source in enumerate(self.sources or [SourceConfig(files=self.files)]):
            name = source.name or Path(source.files[0]).name.split(".")[0] or "source"
            names.append(name if name not in names else f"{name} {number + 1}")
        return names

    @property
    def all_files(self) -> list[str]:
        """The `files` of all sources."""
        return [*self.files, *(path for source in self.sources for path in source.files)]

    @property
    def languages(self) -> list[str]:
        """The languages of the sources, each once."""
        return list(dict.fromkeys(self.of(source).language for source in range(self.num_sources)))

    @property
    def main_language(self) -> str:
        """The language of all sources; `language` if they have several."""
        return self.languages[0] if len(self.languages) == 1 else self.language

    def shares(self, sizes: Sequence[float], step: int, ramp_steps: int) -> list[float]:
        """The share of each source in the rows of a step, counted from 0; together they are 1.

        Args:
            sizes: the size of each source.
            ramp_steps: the steps in which weights and temperature move.
        """
        weights = [source.weight for source in self.sources if source.weight is not None]
        power = value_at(self.temperature, step, ramp_steps)
        parts = [value_at(each, step, ramp_steps) for each in weights] or [size**power for size in sizes]
        total = math.fsum(parts)
        return [part / total for part in parts]

    def of(self, source: int) -> CorpusConfig:
        """The source with this number, from 0, as a corpus of its own."""
        if not self.sources:
            return self
        own = self.sources[source].model_dump(exclude={"name", "weight"})
        return self.model_copy(update={**own, "sources": ()})

    @model_validator(mode="before")
    @classmethod
    def _give_to_sources(cls, value: Any) -> Any:
        """Give each source the keys of the corpus that it does not have."""
        if not isinstance(value, dict) or not isinstance(value.get("sources"), list | tuple):
            return value
        value = {"files": [], **value} if value["sources"] else value
        common = {key: value[key] for key in TextConfig.model_fields if key in value and key != "files"}
        sources = [common | each if isinstance(each, dict) else each for each in value["sources"]]
        return {**value, "sources": sources}

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        if bool(self.files) == bool(self.sources):
            raise ValueError("give files or sources: exactly one of both")
        if self.temperature != 1.0 and (not self.sources or self.sources[0].weight is not None):
            raise ValueError("temperature is for sources without weights")
        names = [each.name for each in self.sources if each.name is not None]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two sources have the name {twice}")
        weights = [each.weight for each in self.sources]
        if None in weights and any(weight is not None for weight in weights):
            raise ValueError("give every source a weight, or none")
        if self.sources and None not in weights:
            for end, place in enumerate(("first", "last")):
                if not any(ends(weight)[end] for weight in weights if weight is not None):
                    raise ValueError(f"every weight is 0 in the {place} step; one or more must be above 0")
        return self


class TokenizerConfig(Section, Generic[ByText]):
    """An existing vocabulary, or the kind, size and normalization of the one to train."""

    path: FilePath | None = None
    """An existing vocab.txt, tokenizer.json or model folder; null: a tokenizer is trained on the corpus."""
    kind: TokenizerKind | Auto = AUTO
    """Kind of the tokenizer to train. auto: WordPiece for bert, distilbert and electra, Unigram for albert
    and deberta-v3, else byte-level BPE. Unigram needs the extra `unigram`."""
    vocab_size: Annotated[int, Field(ge=6, le=MOST_TOKENS)] | ByText = AUTO
    """Number of entries in the vocabulary. auto: from the size of the text and its number of distinct
    characters."""
    lowercase: bool | ByText = AUTO
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


class DataConfig(Section, Generic[ByText, ByMachine]):
    """Sentence pairs and masks (Devlin et al. 2019, section 3.1)."""

    objective: ObjectiveName | ByText = AUTO
    """What the model learns. mlm: masked words; mlm+nsp: also whether text B follows text A; mlm+sop: also
    whether A and B are swapped; rtd: which words a generator replaced. auto: mlm+nsp for bert, mlm+sop for
    albert, rtd for electra and deberta-v3, else mlm."""
    max_length: Tokens = 128
    """Tokens in a row, [CLS] and [SEP] included."""
    short_pair_probability: Probability = 0.1
    """Share of the rows that are cut to a random length (Devlin et al. 2019, appendix A.2)."""
    mask_rate: Share | tuple[Share, Share] | ByText = AUTO
    """Share of the tokens that are predicted; [start, end]: it moves over `training.ramp_steps`. auto: 0.4,
    so that the model learns more from each row (Wettig et al. 2023); 0.3 for modernbert; 0.15 with
    `init_from` or `distillation`."""
    mask_split: tuple[Probability, Probability, Probability] | ByText = AUTO
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
DECAY_SHARE = 0.1
RTD_WEIGHT = 50.0


class TrainingConfig(LoopConfig[ByText, ByMachine], Generic[ByText, ByMachine]):
    """The optimizer's steps of a pretraining run: how many, how large, how fast."""

    steps: Count | None = None
    """Number of optimizer steps. null: the steps of `epochs`, or 1,000 if that is null too."""
    epochs: Positive | None = None
    """Number of passes over the tokens of the corpus; replaces `steps`."""
    batch_size: Rows | tuple[Rows, Rows] | ByText = AUTO
    """Rows per optimizer step; [start, end]: it moves over `ramp_steps`. auto: 32 in a short run, up to 256
    in a long one."""
    warmup_steps: Steps | ByText = AUTO
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
    own; from a larger text, rows are drawn."""


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


class LoggingConfig(Section):
    """Logs of the training steps, and the report of the run."""

    every_steps: Count = 10
    """Steps between two lines of `metrics.jsonl`."""
    tensorboard: bool = False
    """Write events for TensorBoard too; needs the extra `tensorboard`."""
    report: bool = False
    """Whether the run writes `report.html` at its end, as `bertcli report` does."""


class PretrainConfig(Section, Generic[ByText, ByMachine]):
    """A pretraining run."""

    output_dir: FilePath
    """The folder of the run: config, metrics, store, checkpoints and model."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 42
    """Seed of weights, order and masks; the same seed gives the same run."""
    corpus: CorpusConfig
    tokenizer: TokenizerConfig[ByText] = TokenizerConfig()
    data: DataConfig[ByText, ByMachine] = DataConfig()
    model: ModelConfig[ByText] = ModelConfig()
    training: TrainingConfig[ByText, ByMachine] = TrainingConfig()
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
