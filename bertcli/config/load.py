"""A YAML file with `--set`, or a run's folder -> a checked config; one error lists every problem."""

import os
import reprlib
import shlex
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.keys import unknown_key
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import section_in
from bertcli.config.yaml_text import parse_yaml, yaml_text
from bertcli.folders.mark import read_note
from bertcli.folders.run_layout import RunLayout, run_of_model
from bertcli.samples import CONFIGS
from bertcli.system.errors import UserError
from bertcli.system.files import has_file, looked_in, open_input, write_text
from bertcli.system.terminal import counted


def find_config(given: Path) -> Path:
    """The path itself, or the bundled config of this name where no file and no run has the name.

    A folder that is no run does not hide a bundled config: the texts of `novels` are in a folder `novels`.
    """
    bundled = CONFIGS.get(str(given))
    return given if bundled is None or has_file(given) or _is_run(given) else bundled


def config_of_run(folder: Path) -> Path:
    """The path of a run's saved config. Raises `UserError`; for a folder inside a run, it names that run."""
    for other in (run_of_model(folder), folder.parent if _is_seed(folder) else None):
        if other is not None and _is_run(other):
            raise UserError(f"{folder}: is a part of the run in {other}; give {other}")
    if not _is_run(folder):
        raise UserError(
            f"{folder}: is a folder, and not that of a run (a run has .bertcli.json and config.yaml, from "
            "its first step on); give a config file (YAML), or the output_dir of a run"
        )
    path = RunLayout(folder).config
    if not has_file(path):
        raise UserError(f"{path}: is missing, so the run cannot say its config; give a config file (YAML)")
    return path


def output_dir(saved: Any, folder: Path) -> str:
    """The run's folder as its config names it; `folder` as it is given now, if the run was moved since."""
    is_same = isinstance(saved, str) and Path(saved).resolve() == folder.resolve()
    return saved if is_same else str(folder)


def check_continues(given: Path, resume: bool, verb: str) -> None:
    """Raise `UserError` if `given` is a search's folder, or that of a run that would not continue."""
    given = find_config(given)
    if os.path.isdir(given) and RunLayout(given).trials.exists():
        folder = shlex.quote(str(given))
        raise UserError(
            f"{given}: is the folder of a search. To continue it: bertcli tune {folder} --resume. To train "
            f"with the config that it recommends: bertcli finetune {shlex.quote(str(given / 'best.yaml'))}"
        )
    if os.path.isdir(given) and not resume:
        config = shlex.quote(str(config_of_run(given)))
        raise UserError(
            f"{given}: already has a run. To continue it: bertcli {verb} {shlex.quote(str(given))} --resume. "
            f"For a new run with its config: bertcli {verb} {config} --set output_dir=NEW_FOLDER"
        )


def _is_run(folder: Path) -> bool:
    return read_note(folder, "run") is not None


def _is_seed(folder: Path) -> bool:
    return folder in RunLayout(folder.parent).part_folders()


Config = TypeVar("Config", bound=BaseModel)

_MOST_PROBLEMS = 50
"""Most problems that a message lists. Nobody reads more, and each search for a similar key takes time."""
_short = reprlib.Repr()  # a few lines of YAML aliases can mean more text than memory holds
_short.maxlevel, _short.maxstring, _short.maxother = 2, 80, 80


def load_config(schema: type[Config], path: Path, overrides: list[str] | None = None) -> Config:
    """Read `path`, apply `overrides` (each `section.key=value`), check against `schema`.

    The folder of a run stands for the config that the run saved, with this folder as its `output_dir`; a name
    in `CONFIGS` stands for the bundled config.

    Raises `UserError`. It lists every unknown, missing or impossible key, and suggests names for unknown
    keys.
    """
    return check_config(schema, *read_config(path, overrides))


class _Sections(BaseModel):
    corpus: Any = None
    task: Any = None


def load_either_config(path: Path, overrides: list[str] | None = None) -> PretrainConfig | FinetuneConfig:
    """Load the config of a pretraining or of a fine-tuning run.

    Raises:
        UserError: the errors of `load_config`, or the file has a section of neither kind, or of both.
    """
    value, where = read_config(path, overrides)  # once, because it may be a pipe
    sections = check_config(_Sections, value, where)
    if (sections.corpus is None) == (sections.task is None):
        raise UserError(
            f"{path}: a pretraining config has a section corpus, a fine-tuning config a section task; this "
            f"one has {'neither' if sections.corpus is None else 'both'}"
        )
    return check_config(FinetuneConfig if sections.corpus is None else PretrainConfig, value, where)


def read_config(path: Path, overrides: list[str] | None = None) -> tuple[dict[str, Any], str]:
    """The unchecked values that `load_config` checks, and the path of their file for messages."""
    source = find_config(path)
    folder = path if os.path.isdir(source) else None
    if folder is not None:
        source = path = config_of_run(folder)
    try:
        with open_input(source) as file:
            text = file.read().decode("utf-8")
    except FileNotFoundError:
        known = "" if path.suffix in (".yaml", ".yml") else f"; bundled configs: {', '.join(CONFIGS)}"
        raise UserError(f"{path}: no such config file{looked_in(path)}{known}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}; a config is a UTF-8 text file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    value = parse_yaml(text, str(path))
    if not isinstance(value, dict):
        got = "nothing" if not value else "a list" if isinstance(value, list) else "other text"
        raise UserError(
            f"{path}: is no config: expected lines `key: value`, got {got}. For a file of text or of labels, "
            "bertcli init FILE writes a config"
        )
    if folder is not None:
        value["output_dir"] = output_dir(value.get("output_dir"), folder)
    for override in overrides or []:
        _apply_override(value, override)
    return value, str(path)


def check_config(schema: type[Config], value: dict[str, Any], where: str) -> Config:
    """`value` as a `schema`. Raises one `UserError` that lists all its problems."""
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        found = _of_lists([dict(problem) for problem in error.errors(include_url=False)])
        problems = [_describe(schema, problem) for problem in found[:_MOST_PROBLEMS]]
    lines = list(dict.fromkeys(_merge_alternatives(problems)))
    count = counted(len(lines), "problem")
    if len(found) > _MOST_PROBLEMS:
        count = f"more than {count}"
        lines.append("...")
    raise UserError("\n  ".join([f"{where}: {count} in the config:", *lines]))


def save_config(config: BaseModel, path: Path) -> None:
    """Write the full config as YAML, atomically; `load_config` gives the same config back."""
    write_text(path, config_text(config))


def config_text(config: BaseModel) -> str:
    """The full config as YAML."""
    return yaml_text(config.model_dump(mode="json"))


def _apply_override(value: dict[str, Any], override: str) -> None:
    dotted, equals, text = override.partition("=")
    if not equals or not dotted:
        raise UserError(f"--set {override}: expected section.key=value, for example training.steps=200")
    *sections, key = dotted.split(".")
    for section in sections:
        value = value.setdefault(section, {})
        if not isinstance(value, dict):
            raise UserError(f"--set {override}: {section} is not a section")
    value[key] = parse_yaml(text, f"--set {override}")


def _of_lists(problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The problems, except those that expect a number for a list where [start, end] is possible too."""
    places = [problem["loc"] for problem in problems]
    pairs = {place[:i] for place in places for i, part in enumerate(place) if "tuple[" in str(part)}
    return [
        problem
        for problem in problems
        if not (isinstance(problem["input"], list) and problem["loc"][:-1] in pairs)
        or "tuple[" in str(problem["loc"][-1])
    ]


_ALTERNATIVES = {"input should be 'auto'": "auto", "input should be a valid tuple": "[start, end]"}


def _merge_alternatives(problems: list[str]) -> list[str]:
    """Merge the problems of a key that takes a number, `auto`, or a start and an end, into one line."""
    merged: list[str] = []
    for problem in problems:
        name, _, message = problem.partition(": ")
        other = next((each for start, each in _ALTERNATIVES.items() if message.startswith(start)), None)
        same = [i for i, line in enumerate(merged) if line.startswith((f"{name}: ", f"{name}."))]
        if other is None or not same:
            merged.append(problem)
        elif merged[same[0]].startswith(f"{name}: "):
            what, got, value = merged[same[0]].rpartition(", got ")
            what = f"{what[:-1]} or {other})" if what.endswith(")") else f"{what} (or {other})"
            merged[same[0]] = f"{what}{got}{value}"
    return merged


def _describe(schema: type[BaseModel], problem: dict[str, Any]) -> str:
    location = [str(part) for part in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        return unknown_key(schema, location)
    section, keys = schema, []
    for part in location:  # a union adds the names of its members: keep only real keys and indices
        field = section.model_fields.get(part)
        if field is None and not part.isdigit():
            continue
        keys.append(part)
        section = (section_in(field.annotation) if field else None) or section
    name = ".".join(keys) or "the config"
    if problem["type"] == "missing":
        return f"{name}: missing; it has no default"
    if problem["type"] == "model_type":  # a section
        known, got = ", ".join(list(section.model_fields)[:3]), _short.repr(problem["input"])
        return f"{name}: expected a section, indented lines `key: value` ({known}, ...), got {got}"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return message if name == "the config" else f"{name}: {message}"
    return f"{name}: {message[0].lower()}{message[1:]}, got {_short.repr(problem['input'])}"
