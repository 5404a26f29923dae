"""What the sections of all configs have in common, and the sections that configs of both kinds have."""

from __future__ import annotations

import os
import re
import reprlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, NamedTuple, Never, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import TypeVar

from bertcli.config import MOST, MOST_FOLDERS, MOST_ROWS, MOST_TOKENS
from bertcli.system.urls import check_url, refuse_elsewhere


def _expanded(path: str) -> str:
    if not path.strip():
        raise ValueError("the path is empty; for the current folder write .")
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ValueError(
            f"{reprlib.repr(path)} begins with ~ and a name, and no user has this name; write the path of "
            "the folder, which begins with ./ if it is in the current folder"
        )
    if (depth := expanded.count(os.sep)) > MOST_FOLDERS:
        raise ValueError(f"the path leads through {depth:,} folders; at most {MOST_FOLDERS} are possible")
    return expanded


Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, le=1e6)]
Positive = Annotated[float, Field(gt=0.0, le=1e6)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Rows = Annotated[int, Field(ge=1, le=MOST_ROWS)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
DEFAULT_SEED = 42
Tokens = Annotated[int, Field(ge=16, le=MOST_TOKENS)]
NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that neither file names nor UTF-8 can hold: NUL, and half of a surrogate pair."""
Auto = Literal["auto"]
FilePath = Annotated[str, AfterValidator(check_url), AfterValidator(_expanded)]
"""A path or a URL of text or labels, or the name of a sample; `~` becomes the home folder."""
LocalPath = Annotated[str, AfterValidator(refuse_elsewhere), AfterValidator(_expanded)]
"""A path on this machine, or a model on the hub; `~` becomes the home folder."""
AnyPaths = Annotated[
    list[FilePath],
    BeforeValidator(
        lambda value: [value] if isinstance(value, str) else value,
        json_schema_input_type=str | list[FilePath],
    ),
]
"""A list of paths, which may be empty; one path alone means a list of one."""
Paths = Annotated[AnyPaths, Field(min_length=1)]
"""A list of one path or more."""

AUTO: Any = "auto"
"""The default of a key that may be `auto`."""
ByRecipe = TypeVar("ByRecipe", bound=Auto, default=Auto, covariant=True)
"""`auto` of the keys that the recipe decides: family, text and steps in pretraining, the weights in
fine-tuning. In a decided config it is `Never`: the type `int | ByRecipe` of a key is then `int`, in code and
when the config is checked."""
ByMachine = TypeVar("ByMachine", bound=Auto, default=Auto, covariant=True)
"""`auto` of the keys that store and machine decide, later than `ByRecipe`."""


def kinds_of(annotation: Any) -> set[Any]:
    """The types in a union or an annotated type; of a type variable, those in its bound."""
    if isinstance(annotation, TypeVar):
        return kinds_of(annotation.__bound__)
    parts = get_args(annotation)
    return {kind for part in parts for kind in kinds_of(part)} if parts else {annotation}


def _check_text(text: str) -> None:
    found = NO_TEXT.search(text)
    if found:
        name = "a NUL character" if found[0] == "\0" else f"half of a surrogate pair ({found[0]!r})"
        raise ValueError(f"a text with {name}, which no file name can hold")


class Section(BaseModel):
    """A part of a config: frozen, and strict about keys and types."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_what_only_looks_right(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what Python takes for numbers (true, `"1_0"`), and texts that cannot be written or be a
        file's name."""
        kinds = kinds_of(cls.model_fields[info.field_name or ""].annotation)
        takes_number = bool(kinds & {int, float}) and str not in kinds
        or_auto = " or auto" if "auto" in kinds else ""
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, bool) and takes_number and bool not in kinds:
                raise ValueError(f"expected a number, got {str(each).lower()}")
            if isinstance(each, str) and takes_number and each not in kinds:
                raise ValueError(
                    f"expected a number{or_auto}, got the text {reprlib.repr(each)}; write it in decimal "
                    "digits, without quotes, such as 1000, 0.1 or 1e-4"
                )
            if isinstance(each, str):
                _check_text(each)
        return value


def section_in(annotation: Any) -> type[Section] | None:
    """The section that a field holds, also if it may be null; None if the field holds a value."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


def refuse_other_kind(own: str, other: str, command: str) -> Callable[[Any], Any]:
    """A check that refuses a config that has the section `other`, of `command`, but not the section `own`."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and other in value and own not in value:
            raise ValueError(f"it has a section {other}, as for {command}; a section {own} was expected")
        return value

    return check


BadBytes = Literal["refuse", "replace", "skip-line"]


class Decoding(NamedTuple):
    """An encoding, as Python names it, and what happens to bytes that are not in it.

    `section`: the config's section that has the keys `encoding` and `bad_bytes`, for messages.
    """

    encoding: str = "utf-8"
    bad_bytes: BadBytes = "refuse"
    section: str = "corpus"

    @property
    def key(self) -> str:
        """The config's key of the encoding."""
        return f"{self.section}.encoding"


_OPEN_THRESHOLD = re.compile(r"auto|precision=(0?\.\d+|1(\.0*)?)")
"""A threshold that dev decides: by F1, or by a precision."""


def checked_threshold(value: Any) -> Any:
    """The value of a threshold. Raises `ValueError` for what is none."""
    numbers = value.values() if isinstance(value, dict) else [value]
    are_shares = all(type(number) in (int, float) and 0 <= number <= 1 for number in numbers)
    if value is None or are_shares or (isinstance(value, str) and _OPEN_THRESHOLD.fullmatch(value)):
        return value
    expected = "a number from 0 to 1, such a number for each label (label: 0.7), auto, or precision=0.95"
    raise ValueError(f"expected {expected}; got {reprlib.repr(value)}")


Number = TypeVar("Number", int, float)


def ends(value: Number | tuple[Number, Number]) -> tuple[Number, Number]:
    """(start, end) of a config value; a single number is both."""
    return value if isinstance(value, tuple) else (value, value)


def mean_of(value: float | tuple[float, float]) -> float:
    """The mean of a config value over the steps of a ramp."""
    return sum(ends(value)) / 2


def value_at(value: float | tuple[float, float], step: int, ramp_steps: int) -> float:
    """The value of step `step`, counted from 0: linear from start to end over `ramp_steps` steps, then the
    end.

    The value is a pure function of the step, like the learning rate.
    """
    start, end = ends(value)
    return start + (end - start) * min(1.0, step / max(1, ramp_steps - 1))


def shown(value: float | tuple[float, float], form: str = ",") -> str:
    """A config value in words: `64 to 256`."""
    start, end = ends(value)
    return f"{end:{form}}" if start == end else f"{start:{form}} to {end:{form}}"


def differences(old: BaseModel, new: BaseModel) -> dict[str, tuple[Any, Any]]:
    """Dotted key -> (old value, new value), for every key in which two configs of one schema differ.

    If only one config has a key (in a mapping whose keys the user chooses), its value in the other is None.
    """
    before, after = flatten(old.model_dump(mode="json")), flatten(new.model_dump(mode="json"))
    keys = before | after
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


def flatten(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted key -> value, of a config as nested dicts; the sections of a list have numbers."""
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, list) and item and all(isinstance(each, dict) for each in item):
            item = {str(number): each for number, each in enumerate(item)}
        flat |= flatten(item, f"{prefix}{key}.") if isinstance(item, dict) else {f"{prefix}{key}": item}
    return flat


Precision = Literal["bf16", "fp16", "fp32"]
Schedule = Literal["linear", "cosine", "constant", "stable-decay"]
DECAY_SHARE = 0.1
OptimizerName = Literal["adamw", "muon"]


class LoopConfig(Section, Generic[ByRecipe, ByMachine]):
    """The optimizer's steps, in pretraining and in fine-tuning."""

    micro_batch_size: Rows | ByMachine = AUTO
    """Rows that the device computes at once. auto: as many as fit into its memory, used or free, and still
    gain speed."""
    optimizer: OptimizerName | ByRecipe = AUTO
    """Rule of the steps. adamw: AdamW for all parameters (Loshchilov and Hutter 2019); muon: Muon for the
    matrices of the layers (Jordan et al. 2024), AdamW for all others. auto: muon, which learns the same in
    fewer steps; adamw for a model that starts with the weights of another."""
    learning_rate: Positive | ByRecipe = AUTO
    """Peak learning rate. auto: from the model's family, width and depth and the optimizer; with `init_from`
    a fifth of that of a new BERT; in fine-tuning from the model's width and the size of its weights, 3e-5 for
    a BERT-base."""
    betas: tuple[Annotated[float, Field(ge=0.0, lt=1.0)], Annotated[float, Field(ge=0.0, lt=1.0)]] = (
        0.9,
        0.999,
    )
    """AdamW's betas: the decay rates of its two moments."""
    weight_decay: Weight = 0.01
    """Weight decay; biases and norms are not decayed."""
    schedule: Schedule = "linear"
    """Learning rate after the warm-up: it falls to 0 (linear, cosine) or stays (constant). stable-decay: it
    stays, then falls in the last steps of a pretraining run; --resume with more steps goes back to where the
    fall began."""
    max_grad_norm: Annotated[float, Field(gt=0.0)] = 1.0
    """Largest norm of the gradient; a longer gradient is scaled down to it."""
    max_bad_steps: Count = 10
    """Number of steps in a row with a non-finite loss or gradient after which the run stops."""
    precision: Precision | ByMachine = AUTO
    """Number format of the matrix products; weights stay fp32. auto: the fastest that the hardware has."""
    device: str = AUTO
    """The device of the run: auto, cpu, cuda, or cuda:N."""
    compile: bool | ByMachine = AUTO
    """Whether to compile the model. auto: on a GPU, if the run is long enough to save more time than
    compiling takes."""
    activation_checkpointing: bool = False
    """Keep fewer activations for the backward pass and compute the others again: less memory, more time."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """The model on several ranks: ddp keeps a copy of it on each rank, fsdp a part of it."""

    @property
    @abstractmethod
    def largest_batch(self: LoopConfig[Never, ByMachine]) -> int:
        """Rows of the largest step."""


class DistillationConfig(Section):
    """A student learns from a trained teacher (Sanh et al. 2019)."""

    teacher: LocalPath
    """A model folder with an MLM head. The student has the teacher's tokenizer. Where sizes agree, it starts
    with the teacher's embeddings and with some of the teacher's layers, evenly spaced."""
    temperature: Positive = 2.0
    """Divisor of the logits of student and teacher."""
    weights: tuple[Weight, Weight, Weight] = (5.0, 2.0, 1.0)
    """Weights of three losses: the teacher's words at masked tokens, the true words there, and the direction
    of the last hidden states at all tokens."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not any(self.weights):
            raise ValueError("weights: all are 0, so that nothing is learned; give one that is larger")
        return self
