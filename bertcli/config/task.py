"""The section `task` of a fine-tuning config: what its files hold, and what the model learns of it."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from bertcli.config import MOST_TOKENS
from bertcli.config.section import (
    Auto,
    BadBytes,
    Decoding,
    FilePath,
    Positive,
    Probability,
    Section,
    Tokens,
    checked_threshold,
)
from bertcli.system.terminal import either
from bertcli.tasks.registry import TASKS, import_task

LABEL_LINES = ("fasttext", "trec")
"""Formats whose lines hold their labels before the text."""


def _known(type: str) -> str:
    if type not in TASKS:
        raise ValueError(f"input should be {either(map(repr, TASKS))}, got {type!r}")
    return type


Column = str | Annotated[int, Field(ge=0, strict=True)]  # strict: YAML's bare yes and no are no numbers
"""A column's name, or its number counted from 0."""
PoolingMode = Literal["mean", "cls", "max"]
WindowMode = Literal["first", "mean", "max"]
Label = Annotated[str, BeforeValidator(lambda label: str(label) if isinstance(label, int) else label)]
"""A label as a key: YAML reads 1 as a number."""
Thresholds = Probability | dict[Label, Probability] | str | None
ClassWeights = Literal["balanced"] | dict[Label, Annotated[Positive, Field(strict=True)]] | None


class TaskSettings(Section):
    """What a fine-tuned model needs to read its input again; saved in its `config.json`."""

    type: Annotated[
        str, AfterValidator(_known), Field(json_schema_extra=lambda schema: schema.update(enum=list(TASKS)))
    ]
    """What the model predicts of a text: a label, a number, a tag for each word, a span, or one of its
    choices; sentence-embedding: a vector that is near those of similar texts."""
    text: Column | Annotated[list[Column], Field(min_length=1)] | None = None
    """Column of the text, or two columns that make a pair. null: the first column of CoNLL files, SQuAD's own
    keys, `text` of spans, fasttext and trec, and in tables `text` (token-classification, sentence-embedding)
    or `question` and `context` (question-answering). sentence-embedding: [anchor, positive], then any columns
    of texts that do not fit the anchor; one column, or a .txt file with a text a line, is plain text."""
    choices: Column | Annotated[list[Column], Field(min_length=2)] | None = None
    """multiple-choice: a column for each choice, or one column with a list of them."""
    first_choice: Literal[0, 1] | None = None
    """multiple-choice: the number that stands for the first choice in the label's column. null: 0, and the
    label may also be a letter (A is the first), the name of the choice's column, or the choice's text."""
    label: Column | Annotated[list[Column], Field(min_length=2)] | None = None
    """Column of the label; null: the last column of CoNLL files, `answers` of questions in a table, `label`
    of fasttext and trec, the key that holds the spans. classification: several columns, 0 or 1 in each (no or
    yes, false or true), are several labels (`multi_label`). sentence-embedding: the column of the number that
    says how similar the two texts are; null: none."""
    label_names: Annotated[list[str], Field(min_length=2)] | None = None
    """classification, token-classification: the names of labels that the file gives as numbers from 0, or as
    multi-hot lists (a 0 or 1 for each name)."""
    skip_labels: list[str] | None = None
    """classification: labels that mean that a row has no label, such as "-1", "-" or "", an empty cell; these
    rows are left out. null: no row is left out, and a label that surely means this is an error; []: no row is
    left out."""
    tag_scheme: Literal["bio", "plain"] = "bio"
    """token-classification: bio: tags with B, I and the like before a type; plain: names such as parts of
    speech, each of which tags one word (B-NOUN in the model)."""
    format: Literal[
        "auto", "tsv", "csv", "jsonl", "parquet", "conll", "spans", "squad", "fasttext", "trec"
    ] = "auto"
    """Format of the files. auto: from the file's suffix, else from the task. jsonl: JSON objects, one a line
    or in a list. spans: entities by their characters, as doccano, Prodigy, spaCy, Label Studio and brat write
    them; JSON that holds them and brat's files are found by auto. fasttext: `__label__NAME` before each text,
    several with `multi_label`. trec: COARSE:fine before each text; `label: label` learns the first part,
    `label: fine` both. csv: semicolons or tabs separate fields if the first line has no comma."""
    words: Literal["given", "tokenizer"] | None = None
    """token-classification: what has a tag. given: the words of the file, and in running text those between
    blanks and punctuation. tokenizer: the words of the tokenizer's pre-tokenization, in the text as it
    stands. null: tokenizer if the training file holds spans, else given."""
    span_ends: Literal["refuse", "widen"] = "refuse"
    """spans: treatment of a span that begins or ends inside a word. refuse ends the run with their number;
    widen takes the whole words."""
    overlaps: Literal["refuse", "longest"] = "refuse"
    """spans: treatment of spans that overlap, or are inside others. refuse ends the run with their number;
    longest keeps the longest span."""
    offsets: Literal["auto", "characters", "utf-16"] = "auto"
    """spans: what the numbers of a span count. characters: Unicode code points, as Python does. utf-16: code
    units, as JavaScript and doccano do; an emoji has two. auto: characters, unless the file has such a
    character and its spans fit words better in units."""
    separator: Annotated[str, Field(max_length=1)] | None = None
    """Character between the fields of tsv and csv, such as `;`; `\\t` is a tab. null: a tab in tsv, and in
    csv the character that `format` describes."""
    columns: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of the columns, where the file has no header."""
    quoting: Literal["auto", "csv", "none"] = "auto"
    """Whether `"` quotes a field. auto: it does in csv; in tsv it does if every record then has as many
    fields as the header, and no record consists of lines that would be records themselves."""
    ignore_extra_fields: bool = False
    """True: a row of tsv or csv may have more fields than the header, such as an empty one after a separator
    at its end; they are left out. false: such a row is an error."""
    encoding: str = "utf-8"
    """Encoding of the text files, as Python names it. utf-8: a file with the byte order mark of UTF-16 or
    UTF-32 is read in that encoding."""
    bad_bytes: BadBytes = "refuse"
    """Treatment of bytes of the labeled files that are not in the encoding. refuse ends the run; replace
    reads U+FFFD in their place; skip-line leaves out the rows. Both first name and count the lines."""
    max_length: Tokens = 128
    """Tokens in a row, [CLS] and [SEP] included."""
    doc_stride: Annotated[int, Field(ge=0, le=MOST_TOKENS)] = 64
    """Tokens that two windows of one text share, at most half of a window (tokens, questions, `windows`)."""
    windows: WindowMode = "first"
    """classification, regression, sentence-embedding: what is read of a text that is longer than
    `max_length`. first: its beginning alone; the rest is cut. mean, max: all of it, in windows; the logits of
    the text are the mean or the highest of those of its windows, and so is its vector, for whose mean each
    window counts by its tokens. Of a pair the longer text is divided; the other one is in every window."""
    max_windows: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = 32
    """Most windows of a text with `windows: mean` or `max`; what is after them is cut. Training holds all
    windows of a row in memory at once."""
    multi_label: bool = False
    """classification: a text has any number of labels: a list, an object with a 0 or 1 for each, or a text
    with `label_separator` between them."""
    label_separator: str | None = None
    """multi_label: the separator between the labels of a text, such as ";"; null: a comma."""
    ticks: bool = False
    """label: several columns: true: a mark (x, 1, yes) says that the label fits, and an empty cell that it
    does not. false: an empty cell is an error."""
    positive_label: str | None = None
    """classification with two labels: the label whose F1 is the metric `f1`; null: the second one in the
    order of numbers by value, then words."""
    threshold: Annotated[Thresholds, BeforeValidator(checked_threshold)] = None
    """classification with two labels or `multi_label`: a label is given if its probability is at least this.
    With two labels this is the threshold of the positive label, or of the one that is named. null: the
    likelier one of two labels, and 0.5 with `multi_label`. auto: each evaluation finds the threshold of each
    label with the best F1 on dev, and the model keeps it. precision=0.95: the same, with the highest recall
    whose precision is at least that. Without dev data both mean null. A number, or a number for each label,
    is kept as it is."""
    temperature: Positive | Auto | None = "auto"
    """classification: the number by which the last layer of the finished model is divided, so that
    probabilities are shares of right answers. auto: it is fitted on dev; without dev it is 1. null: 1. A
    finished model notes the number here."""
    sigmoid: bool = False
    """regression: true for a probability from 0 to 1, such as that a passage is relevant (1) or not (0); the
    model learns it by a sigmoid and binary cross-entropy. false: any number, by the squared error."""
    null_threshold: Annotated[float, Field(ge=-1e6, le=1e6)] | Auto | None = "auto"
    """question-answering: the answer is "no answer" if its score exceeds that of the best answer by more than
    this; a score is the sum of two logits. null: never. auto: each evaluation finds the threshold with the
    best F1 on dev, and the model keeps it; without dev it is 0, and null if all questions have answers."""
    scale: Positive = 20.0
    """sentence-embedding: factor of the cosines in the loss."""

    @property
    def decoding(self) -> Decoding:
        """How the files are read."""
        return Decoding(self.encoding, self.bad_bytes, "task")

    @property
    def text_columns(self) -> tuple[Column, ...]:
        """The columns of text; none where `text` is null."""
        if self.text is None:
            return ()
        return tuple(self.text) if isinstance(self.text, list) else (self.text,)

    @property
    def label_columns(self) -> tuple[Column, ...]:
        """The columns of the label; none where `label` is null."""
        if self.label is None:
            return ()
        return tuple(self.label) if isinstance(self.label, list) else (self.label,)

    @property
    def in_windows(self) -> bool:
        """True if a text that is longer than `max_length` is read in windows; else it is cut."""
        return self.windows != "first" or import_task(self.type).in_windows

    @property
    def closed(self) -> Self:
        """The settings without what dev data was to decide, as a checkpoint has them."""
        threshold = None if isinstance(self.threshold, str) else self.threshold
        temperature = None if self.temperature == "auto" else self.temperature
        return self.model_copy(update={"threshold": threshold, "temperature": temperature})

    @property
    def is_plain_text(self) -> bool:
        """True if a row is one text, which has no right answer."""
        return not import_task(self.type).has_answers(self)

    @model_validator(mode="before")
    @classmethod
    def _usual_columns(cls, values: Any) -> Any:
        if not isinstance(values, dict) or str(values.get("type")) not in TASKS:
            return values
        return import_task(values["type"]).usual_settings(values)

    @field_validator("separator", mode="before")
    @classmethod
    def _separator(cls, value: Any) -> Any:
        if value == "":
            raise ValueError('it is empty; a bare | begins a text of lines in YAML: write "|" in quotes')
        if isinstance(value, str) and value in ('"', "\n", "\r"):
            raise ValueError("fields cannot be separated by a quote or the end of a line")
        return "\t" if value == "\\t" else value

    @field_validator("positive_label", "label_names", "skip_labels", mode="before")
    @classmethod
    def _label_as_text(cls, value: Any) -> Any:
        if isinstance(value, list):
            return [cls._label_as_text(each) for each in value]
        if isinstance(value, bool):
            raise ValueError("YAML reads a bare yes, no, true or false as no text; write it in quotes")
        return str(value) if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        for name, field in type(self).model_fields.items():
            if (value := getattr(self, name)) not in (None, field.default):
                self._check_taken(
                    "keys", name, f"{name}: {value}" if isinstance(field.default, str) else name
                )
        if isinstance(self.label, list):
            self._check_taken("keys", "multi_label", "label: several columns")
        self._check_taken("formats", self.format, f"format: {self.format}")
        import_task(self.type).check_settings(self)
        for name in ("columns", "label_names"):
            if (names := getattr(self, name)) is not None and len(set(names)) < len(names):
                raise ValueError(f"{name}: a name is given twice")
        return self

    def _check_taken(self, kind: Literal["keys", "formats"], value: str, what: str) -> None:
        """Raise `ValueError` for a key or a format that only other tasks take."""
        takers = [type for type in TASKS if value in getattr(import_task(type), kind)]
        if takers and self.type not in takers:
            raise ValueError(f"{what} is for type: {' or '.join(takers)}, not {self.type}")


class TaskConfig(TaskSettings):
    """The task, its files and how it is evaluated."""

    train: FilePath
    """The training file, its URL (s3, gs, hf, https), or the name of a bundled sample."""
    dev: FilePath | None = None
    """A file of the same form; the scores on it select the best model."""
    dev_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Share of the training file that is dev data if `dev` is null. `seed` chooses the rows, and labels keep
    their proportions; a row that alone has a label or tag stays in training."""
    group: Column | None = None
    """Tables: column of a value that several rows share, such as a patient or an author. Rows with the same
    value are on one side of `dev_fraction` and in one of the `folds`; every row must have one."""
    class_weights: ClassWeights = None
    """Weight of each label's rows in the loss; balanced: every label has the same weight in total."""
    few_shot: bool = False
    """classification with one label a text: learn from few rows. The run first brings the vectors of texts
    with the same label near each other, and those with other labels apart; then it learns the labels
    (Tunstall et al. 2022). An epoch reads every row several times."""
    metric: str | None = None
    """The metric that selects the best checkpoint; among equal ones, the lower loss decides. null: the task's
    default."""
    pooling: PoolingMode | None = None
    """sentence-embedding: the vector of a text is the mean of its tokens, that of [CLS], or their maximum.
    null: what the folder of a sentence-transformers model says, else mean. classification, regression: what a
    new head reads (mean: BERT and RoBERTa get a layer more). null: mean with few_shot, else unchanged."""
    skip_bad: bool = False
    """Leave out unusable rows and report them, instead of stopping: rows with a wrong number of fields, an
    empty text, or a SQuAD answer that is not at the place that the file gives."""

    @property
    def has_dev(self) -> bool:
        """True if there is data to evaluate on."""
        return self.dev is not None or self.dev_fraction is not None

    @property
    def settings(self) -> TaskSettings:
        """The part that is saved with the model."""
        return TaskSettings(**{name: getattr(self, name) for name in TaskSettings.model_fields})

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.dev is not None and self.dev_fraction is not None:
            raise ValueError("give dev or dev_fraction, not both")
        if self.label is None and import_task(self.type).names_columns:
            raise ValueError("label: name the column of the label")
        if isinstance(self.temperature, float):
            raise ValueError("temperature: auto or null; a number is what a finished model notes")
        if self.is_plain_text and self.has_dev:
            raise ValueError(
                "dev: plain text has no right answers to evaluate by; leave dev and dev_fraction out, and "
                "measure the model on pairs: bertcli evaluate RUN --data PAIRS --text A --text B"
            )
        if self.pooling == "max" and import_task(self.type).head is not None:
            raise ValueError("pooling: max is for type: sentence-embedding; choose mean or cls")
        for name in ("class_weights", "few_shot"):
            if getattr(self, name) and self.multi_label:
                raise ValueError(f"{name} is for type: classification with one label a text")
        return self
