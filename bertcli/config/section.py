"""What the sections of all configs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Auto = Literal["auto"]
_SomePaths = Annotated[list[str], Field(min_length=1)]
Paths = Annotated[
    _SomePaths,
    BeforeValidator(
        lambda value: [value] if isinstance(value, str) else value, json_schema_input_type=str | _SomePaths
    ),
]
"""One path alone means a list of one."""

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

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool_for_number(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML reads a bare yes or on as true, and Python accepts true as 1."""
        kinds = _kinds(cls.model_fields[info.field_name or ""].annotation)
        if isinstance(value, bool) and kinds & {int, float} and not kinds & {bool, str}:
            raise ValueError(f"expected a number, got {str(value).lower()}")
        return value


def section_in(annotation: Any) -> type[Section] | None:
    """The section that a field holds, also one that may be null; None: it holds a value."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


def refuse_other_kind(own: str, other: str, command: str) -> Callable[[Any], Any]:
    """A check that refuses a config with the section `other`, of `command`, but without the section `own`."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and other in value and own not in value:
            raise ValueError(f"it has a section {other}, as for {command}; a section {own} was expected")
        return value

    return check
