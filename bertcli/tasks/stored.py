"""What the `config.json` of a model folder says about a labeled task, for bertcli and for other libraries."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bertcli.config.task import TaskSettings
from bertcli.families.family import HeadKind

_MOST_OUTPUTS = 1 << 20
"""A limit that is higher than any head needs."""


class StoredTask:
    """The part of a `LabeledTask` that its model folders show.

    Attributes:
        head: what its head reads, a key of `Family.heads`; None: the model has no head and gives vectors.
        names_outputs: whether the head's outputs have names, the labels; else there is one, or start and end.
        in_windows: whether a long text is divided into several items; else it is cut.
    """

    head: ClassVar[HeadKind | None]
    names_outputs: ClassVar[bool] = False
    in_windows: ClassVar[bool] = False

    @classmethod
    def is_in(cls, config: Mapping[str, Any]) -> bool:
        """True if a `config.json` that another library wrote for a class with this head fits this task.

        If it fits several tasks, the first of `tasks.registry.TASKS` reads it.
        """
        return cls.head is not None

    @classmethod
    def foreign_settings(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """The settings for such a `config.json`, beside the length of rows: columns have transformers' names.

        Raises `ValueError` for a model that this task cannot have.
        """
        return {"text": "text"}

    @classmethod
    def config_keys(cls, settings: TaskSettings, labels: Sequence[str]) -> dict[str, Any]:
        """The keys of `config.json` by which other libraries read the model, except the class."""
        if not labels:
            return {}
        return {
            "id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)},
        }

    def parts(self, prediction: Any) -> Sequence[Any]:
        """The answer in parts: numbers, or what is right or wrong by itself, as each word's tag is."""
        return [next(iter(prediction.as_json().values()))]


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
