"""The facts of a labeled task: what it reads, and what its model folders show."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, ClassVar

from bertcli.config.task import TaskSettings
from bertcli.families.family import HeadKind
from bertcli.system.terminal import Report
from bertcli.tasks.columns import Recognized, Sample
from bertcli.tasks.examples import Example, TextExample
from bertcli.tasks.registry import TASKS
from bertcli.tasks.table import BadRow, LabeledFile, Table, quiet
from bertcli.tokenizer.tokenizer import Tokenizer

_MOST_OUTPUTS = 1 << 20
"""A limit that is higher than any head needs."""


class TaskFacts(ABC):
    """The part of a `LabeledTask` that is known before there are examples; all of it belongs to the class.

    Attributes:
        type: the name of the task in `tasks.registry.TASKS`, and in `task.type`.
        keys: the keys of `TaskConfig` that this task takes and some tasks do not.
        formats: the values of `task.format` that this task takes and some tasks do not.
        names_columns: whether the config must name the columns of text and label.
        has_choices: whether a row has choices, two or more, after its texts.
        takes_pairs: whether a row of one text may also be a pair.
        is_cased: whether capitals matter, as in names; `init` then takes a cased model.
        longest_row: the most tokens of a row that `init` chooses.
        fixed_texts: how many texts a row has, whatever `task.text` names; 0: one for each column there.
        any_texts: whether files with more or fewer texts a row than the model was trained on can be read.
        head: what its head reads, a key of `Family.heads`; None: the model has no head and gives vectors.
        names_outputs: whether the head's outputs have names, the labels; else there is one, or start and end.
        in_windows: whether a long text is divided into several items; else it is cut.
        foreign_keys: the settings for a `config.json` that another library wrote, beside the length of rows:
            columns have transformers' names.
        own_examples: the functions that give the examples of files in the formats of `formats` that are no
            tables, by format.
        may_be_in: the function that says whether JSON or Parquet has labels of this task, and is no corpus;
            None: `recognize` decides.
    """

    type: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    formats: ClassVar[tuple[str, ...]] = ()
    names_columns: ClassVar[bool] = True
    has_choices: ClassVar[bool] = False
    takes_pairs: ClassVar[bool] = True
    any_texts: ClassVar[bool] = False
    is_cased: ClassVar[bool] = False
    longest_row: ClassVar[int] = 512
    fixed_texts: ClassVar[int] = 0
    head: ClassVar[HeadKind | None]
    names_outputs: ClassVar[bool] = False
    in_windows: ClassVar[bool] = False
    foreign_keys: ClassVar[Mapping[str, Any]] = {"text": "text"}
    own_examples: ClassVar[Mapping[str, Callable[[LabeledFile], Iterator[Example | BadRow]]]] = {}
    may_be_in: ClassVar[Callable[[Sample], bool] | None] = None

    @staticmethod
    def recognize(sample: Sample) -> Recognized | None:
        """The keys of `task` for a labeled file; None: it is not this task's.

        `init` asks the last task of `tasks.registry.TASKS` first, then those above, until one recognizes the
        file. Raises `UserError` for labels of this task that cannot be read.
        """
        return None

    @staticmethod
    @abstractmethod
    def table_examples(table: Table) -> Iterator[Example | BadRow]:
        """An example for each row of a table. Raises `UserError` if a column is missing."""

    @staticmethod
    def at_words(
        rows: Iterable[Any],
        settings: TaskSettings,
        tokenizer: Tokenizer | None,
        report: Report = quiet,
    ) -> Iterable[Any]:
        """The rows of a file as `encode` needs them, if the tokenizer decides about their words.

        None: the tokenizer is not known; what needs it stays as it is. `report` is called with the number of
        labels that do not fit the words.
        """
        return rows

    @classmethod
    def usual_settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The section `task` as it is written, with this task's values for keys that are not given."""
        return values

    @classmethod
    def check_settings(cls, settings: TaskSettings) -> None:
        """Raise `ValueError` for settings that contradict each other or lack a key.

        The keys and formats of other tasks are refused before. The label may be missing: a model that was
        trained elsewhere has none.
        """
        if cls.names_columns and settings.text is None:
            raise ValueError(f"text: name the column of the text, or two columns for pairs ({cls.type})")
        if len(settings.text_columns) > 2:
            raise ValueError(f"text: one column, or two for pairs ({cls.type})")

    @classmethod
    def has_answers(cls, settings: TaskSettings) -> bool:
        """True if rows have right answers, by which a model can be evaluated."""
        return True

    @classmethod
    def num_texts(cls, settings: TaskSettings) -> int:
        """How many texts a row has, without its choices."""
        return cls.fixed_texts or len(settings.text_columns)

    @classmethod
    def text_names(cls, settings: TaskSettings) -> list[str]:
        """The names of the texts of a row: those of their columns, or the usual ones."""
        number = cls.num_texts(settings)
        names = [name for name in settings.text_columns if isinstance(name, str)]
        return names if len(names) == number else [*cls.example([""] * number, "", settings).columns][:number]

    @classmethod
    def is_one_text(cls, settings: TaskSettings) -> bool:
        """True if a row is a single text."""
        return not cls.has_choices and cls.num_texts(settings) == 1

    @classmethod
    def reads(cls, settings: TaskSettings) -> str:
        """The texts of a row in words, without its choices."""
        number = cls.num_texts(settings)
        return {1: "a text", 2: "a pair of texts"}.get(number, f"{number} texts")

    @classmethod
    def usual_format(cls, settings: TaskSettings) -> str:
        """The format of a file whose name does not say it."""
        return "tsv"

    @classmethod
    def example(cls, texts: Sequence[str], where: str, settings: TaskSettings) -> Example:
        """The unlabeled example of a row's texts: as many as `num_texts`, then any choices."""
        names = ("text",) if len(texts) == 1 else ("text_a", "text_b")
        return TextExample(where, dict(zip(names, texts, strict=True)), tuple(texts), label=None)

    @staticmethod
    def label_set(examples: Iterable[Any], settings: TaskSettings) -> tuple[str, ...]:
        """The labels of the training file in the order of the model's outputs; empty if these have no names.

        Raises:
            UserError: too few labels to choose from.
        """
        return ()

    @classmethod
    def is_in(cls, config: Mapping[str, Any]) -> bool:
        """True if a `config.json` that another library wrote for a class with this head fits this task.

        If it fits several tasks, the first of `tasks.registry.TASKS` reads it.
        """
        return cls.head is not None

    @classmethod
    def foreign_settings(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """`foreign_keys`, and what this `config.json` decides.

        Raises `ValueError` for a model that this task cannot have.
        """
        return {**cls.foreign_keys}

    @classmethod
    def config_keys(cls, settings: TaskSettings, labels: Sequence[str]) -> dict[str, Any]:
        """The keys of `config.json` by which other libraries read the model, except the class."""
        if not labels:
            return {}
        return {
            "id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)},
        }


def facts_of(name: str) -> type[TaskFacts]:
    """The class of a task, for files that need no torch before they use it; `name` is a key of `TASKS`."""
    return resolve_name(TASKS[name])


def output_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a head's outputs in their order; without names, those that transformers gives."""
    id2label = config.get("id2label")
    if isinstance(id2label, Mapping):
        return tuple(str(id2label[i]) for i in sorted(id2label, key=lambda i: (len(i), i)))
    number = config.get("num_labels")
    return tuple(f"LABEL_{i}" for i in range(min(number, _MOST_OUTPUTS) if isinstance(number, int) else 2))


def score_keys(settings: TaskSettings, activation: str) -> dict[str, Any]:
    """The key by which `CrossEncoder.predict`, release 4 or later, gives our number for a pair; else empty.

    It takes the sigmoid of every single output without the key.
    """
    if len(settings.text_columns) != 2:
        return {}
    return {"sentence_transformers": {"activation_fn": f"torch.nn.modules.{activation}"}}
