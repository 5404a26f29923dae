"""What surrounds each call of the Python API: checked arguments, one kind of error, the process as before."""

import contextlib
import functools
import operator
import os
import reprlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from bertcli.system.errors import UserError
from bertcli.system.exhausted import describe_exhausted, describe_os_error
from bertcli.system.signals import Guard, Stopped
from bertcli.system.terminal import either
from bertcli.system.urls import refuse_elsewhere

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_PREFIXES = ("CUBLAS", "TOKENIZERS_", "TORCH", "TRITON")
"""Prefixes of the environment variables that we and torch set."""
_PANIC = "PanicException"
"""Name of the exception for a panic in Rust: no module holds its class, and it is not an `Exception`."""
_LIBRARIES = (
    *("filelock", "httpx", "huggingface_hub", "onnx", "pydantic", "requests", "safetensors"),
    *("tokenizers", "torch", "yaml"),
)
"""Modules whose errors become `UserError`; tokenizers also raises a bare `Exception`.

Errors of the caller, such as a time limit that a signal handler raises, pass unchanged.
"""


def call(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a call of the Python API, which then raises only `UserError` and Python's own errors.

    Signal handlers and streams are restored afterward, whatever happened.
    """
    return _guarded(function, lambda: lambda: None)


def call_of_torch(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a call that trains or reads weights: `call`, which also restores the state of libraries.

    The state is torch's, the filters of warnings, and the libraries' environment variables. Changes that
    other threads make to it meanwhile are lost.
    """
    return _guarded(function, _torch_as_now)


def _guarded(
    function: Callable[Arguments, Result], remember: Callable[[], Callable[[], None]]
) -> Callable[Arguments, Result]:
    @functools.wraps(function)
    def called(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        guard = Guard(_streams.open, _streams.close, remember())
        try:
            guard.enter()
            return function(*arguments, **named)
        except BaseException as error:  # panics of libraries in Rust are no `Exception`
            _raise_as_ours(error)
            raise
        finally:
            guard.holds = True
            guard.leave()

    return called


class _Streams:
    """Null devices for streams that are None (pythonw, a service), while calls of any thread run."""

    def __init__(self) -> None:
        self._lock, self._calls, self._opened = threading.Lock(), 0, dict[str, Any]()

    def open(self) -> None:
        with self._lock:
            self._calls += 1
            for name in ("stdout", "stderr"):
                if getattr(sys, name) is None:
                    self._opened[name] = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
                    setattr(sys, name, self._opened[name])

    def close(self) -> None:
        with self._lock:
            self._calls -= 1
            while self._opened and not self._calls:
                name, stream = self._opened.popitem()
                stream.close()
                if getattr(sys, name) is stream:
                    setattr(sys, name, None)


_streams = _Streams()


def _raise_as_ours(error: BaseException) -> None:
    """Raise a `UserError` for what is a message on the command line, and for errors of other libraries."""
    if isinstance(error, UserError | KeyboardInterrupt | GeneratorExit):
        return
    if isinstance(error, SystemExit):
        number = (error.code if isinstance(error.code, int) else 2) - 128
        if number < 0:
            raise UserError("another rank could not go on; its message says why") from None
        raise Stopped(f"stopped by signal {number}") from None
    message = describe_exhausted(error) or describe_os_error(error)
    kind = type(error)
    is_others = kind is Exception or kind.__module__.startswith(_LIBRARIES) or kind.__name__ == _PANIC
    if message is None and is_others:
        message = f"{kind.__name__}: {error}"
    if message is not None:
        raise UserError(message) from error


def _torch_as_now() -> Callable[[], None]:
    """Remember torch's state and the libraries' variables; return a function that puts them back."""
    import torch

    deterministic: Any = torch.utils.deterministic  # pyright: ignore[reportAttributeAccessIssue]
    filled = deterministic.fill_uninitialized_memory
    determinism = _determinism()
    threads, dtype, filters = torch.get_num_threads(), torch.get_default_dtype(), warnings.filters[:]
    generator = torch.get_rng_state()
    generators = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    variables = _variables()

    def restore() -> None:
        torch.set_rng_state(generator)
        if generators is not None:
            torch.cuda.set_rng_state_all(generators)
        if _determinism() != determinism:  # setting it imports torch's compiler
            torch.use_deterministic_algorithms(determinism[0], warn_only=determinism[1])
        deterministic.fill_uninitialized_memory = filled
        torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if warnings.filters != filters:
            warnings.filters[:] = filters  # pyright: ignore[reportIndexIssue]
        for name in _variables().keys() - variables.keys():
            del os.environ[name]
        os.environ.update(variables)

    return restore


def _determinism() -> tuple[bool, bool]:
    """Whether torch uses deterministic algorithms alone, and whether it only warns of others."""
    import torch

    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}


def one_of(name: str, value: Any, *allowed: Any) -> Any:
    """The `value`. Raises `UserError` that names the argument if the value is none of `allowed`."""
    for each in allowed:
        if type(value) is type(each) and value == each:
            return value
    raise UserError(f"{name}: expected {either(map(repr, allowed))}; got {reprlib.repr(value)}")


def count(name: str, value: Any) -> int:
    """A whole number of at least 1. Raises `UserError` that names the argument."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or number != value:  # torch takes 1.5 for 1
        raise UserError(f"{name}: expected a whole number of at least 1; got {reprlib.repr(value)}")
    return number


def probability(name: str, value: Any) -> float:
    """A number from 0 to 1. Raises `UserError` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UserError(f"{name}: expected a number from 0 to 1; got {reprlib.repr(value)}")
    return float(value)


def positive(name: str, value: Any) -> float:
    """A finite number above 0. Raises `UserError` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise UserError(f"{name}: expected a number above 0; got {reprlib.repr(value)}")
    return float(value)


def text(name: str, value: Any) -> str:
    """A text that can be written as UTF-8. Raises `UserError` that names the argument."""
    if not isinstance(value, str):
        raise UserError(f"{name}: expected a text; got {_kind(value)} ({reprlib.repr(value)})")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        character = value[error.start]
        raise UserError(
            f"{name}: character {error.start + 1:,} ({character!r}) is half of a surrogate pair, which no "
            "text can hold; correct how the text was decoded"
        ) from None
    return str(value)


def texts(name: str, value: Any) -> list[Any]:
    """One text, or the items of several, which are not checked yet.

    Raises `UserError` that names the argument for a value without an order of texts.
    """
    if isinstance(value, str):
        return [value]
    has_no_order = isinstance(value, Mapping | Set | bytes | bytearray) or hasattr(value, "columns")
    items: Iterator[Any] | None = None
    with contextlib.suppress(TypeError):  # also of an array without dimensions, which has the method
        items = None if has_no_order else iter(value)
    if items is None:
        raise UserError(f"{name}: expected a text, or a list of texts; got {_kind(value)}")
    return list(items)


def row(name: str, value: Any) -> list[str]:
    """The texts of a row: one text, or a sequence of texts. Raises `UserError` that names the row."""
    if isinstance(value, Iterator) or not (isinstance(value, str | Sequence) or hasattr(value, "__len__")):
        raise UserError(f"{name}: expected a text, or a tuple of texts; got {_kind(value)}")
    several = texts(name, value)
    names = [name] if len(several) == 1 else [f"{name}, text {i}" for i in range(1, len(several) + 1)]
    return [text(where, each) for where, each in zip(names, several, strict=True)]


def path(name: str, value: Any) -> Path:
    """A path that the system can look up. Raises `UserError` that names the argument."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise UserError(f"{name}: expected a path; got {_kind(value)} ({reprlib.repr(value)})")
    given = refuse_elsewhere(os.fspath(value))
    reason = "" if given else "it is empty"
    try:
        os.stat(given)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, with a NUL, in a folder that is not ours
        reason = str(getattr(error, "strerror", None) or error)
    if reason:
        raise UserError(f"{name}: {reprlib.repr(given)} cannot be used as a path: {reason.lower()}")
    return Path(value)


def _kind(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
