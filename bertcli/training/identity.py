"""The files that a run reads, and their identity, which `data.json` keeps for a resume."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import AUTO
from bertcli.corpus.files import corpus_files, list_files
from bertcli.corpus.matching import output_paths
from bertcli.corpus.token_store import OpenStore
from bertcli.folders.locate import GENERATOR, resolve_model
from bertcli.folders.mark import write_own
from bertcli.folders.model_files import files_read
from bertcli.folders.model_folder import DIFFERENCES
from bertcli.folders.sentence_transformers import SENTENCE_FILES
from bertcli.objectives.registry import OBJECTIVES
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, file_hash, plain_text
from bertcli.system.terminal import say
from bertcli.tasks.brat import parts_of
from bertcli.tasks.files import find_labeled_file
from bertcli.tasks.registry import import_task
from bertcli.tokenizer.folder import tokenizer_files
from bertcli.training.run_folder import Input

_LATER = ("models", "general")
"""Keys of `data.json` that runs of earlier versions lack; those versions recorded fewer files."""


def pretraining_inputs(config: PretrainConfig) -> Iterator[Input]:
    """All existing files that the run reads; `folders.locate.locate_init_from` has located the folders."""
    yield from _pretraining_models(config)
    tokenizer = config.tokenizer.path and Path(config.tokenizer.path).expanduser()
    if tokenizer and tokenizer.exists():
        yield from (Input("tokenizer.path", str(path), path) for path in tokenizer_files(tokenizer))
    for file in corpus_files(config.corpus, output_paths(config), missing_ok=True):
        yield Input("corpus.files", file.name, file.path)
    yield from _general(config)


def finetuning_inputs(config: FinetuneConfig) -> Iterator[Input]:
    """All files that the run reads; `config.model` is located."""
    yield from _labeled(config)
    yield from _finetuning_models(config)


def store_identity(store: OpenStore, config: PretrainConfig) -> dict[str, Any]:
    """Hashes of the tokenizer, the arrays, the corpus files (SHA-256), the models and the general text."""
    manifest = store.manifest
    return {
        "vocabulary": manifest.tokenizer_hash,
        "files": {file.name: file.sha256 for file in manifest.files},
        "arrays": manifest.hashes,
        "models": _hashes(_pretraining_models(config)),
        "general": _hashes(_general(config)),
    }


def task_identity(config: FinetuneConfig, labels: tuple[str, ...]) -> dict[str, Any]:
    """The labels, and hashes of the labeled files (SHA-256) and of the files of model and teacher."""
    files, models = _hashes(_labeled(config), "sha256"), _hashes(_finetuning_models(config))
    return {"labels": list(labels), "files": files, "models": models}


def check_same_store(before: dict[str, Any], now: dict[str, Any], path: Path, store: Path) -> None:
    """Check on a resume that `now` equals `before`, saved in `path`; report a change of the general text.

    Raises:
        UserError: the store in `store` was built again from other data, which gives other batches; or the
            files of a model changed.
    """
    changed = _changed(before["files"], now["files"])
    if before["vocabulary"] != now["vocabulary"]:
        changed.append("the vocabulary")
    if not changed and before["arrays"] != now["arrays"]:
        changed.append(
            "the same text and vocabulary, but other sentences or tokens, by another version of a library"
        )
    if changed:
        raise UserError(
            f"cannot resume: {store} was built again since the start of the run, and these changed: "
            f"{', '.join(changed)} ({path}). Restore them and build the store again (bertcli prepare CONFIG "
            "--overwrite), or start a new run in another output_dir"
        )
    _check_same_files(before, now, path)
    if general := _changed(before.get("general", now["general"]), now["general"]):
        say(f"resume: the text of corpus.general changed: {', '.join(general)}")


def check_same_data(before: dict[str, Any], now: dict[str, Any], path: Path) -> None:
    """Check on a resume that labels and files are the same as in `before`, saved in `path`.

    Raises:
        UserError: they changed.
    """
    if before["labels"] != now["labels"]:
        raise UserError(
            f"cannot resume: the labels are {', '.join(now['labels']) or 'none'} now, and were "
            f"{', '.join(before['labels']) or 'none'} at the start of the run ({path}); restore the file, or "
            "start a new run in another output_dir"
        )
    _check_same_files(before, now, path)


def write_run_data(path: Path, data: dict[str, Any]) -> None:
    """Write the identity of the run's data if the file is missing. Raises `UserError` if the disk is full."""
    if path.exists():
        return
    with disk_errors(f"{path}: could not be written"):
        write_own(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def read_run_data(path: Path, types: dict[str, type]) -> dict[str, Any] | None:
    """The content of the file, whose keys have these `types`; None: the run was killed before writing it.

    Raises:
        UserError: the file is damaged.
    """
    if not path.exists():
        return None
    try:
        data = json.loads(plain_text(path))
        needed = {key: kind for key, kind in types.items() if key in data or key not in _LATER}
        wrong = [key for key, kind in needed.items() if not isinstance(data[key], kind)]
        if wrong:
            raise ValueError(f"{wrong[0]} is not a {types[wrong[0]].__name__}")
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: damaged ({error!r}), so the data cannot be compared with those of the run's start. "
            "If they are unchanged, remove this file and resume; else start a new run"
        ) from None
    return data


def _check_same_files(before: dict[str, Any], now: dict[str, Any], path: Path) -> None:
    """Raise `UserError` if files differ; files that an earlier version did not record are not compared."""
    then = before["files"] | before.get("teacher", {}) | before.get("models", {})
    files = now["files"] | now["models"]
    if "models" not in before:
        then, files = ({name: each[name] for name in then.keys() & files} for each in (then, files))
    if changed := _changed(then, files):
        raise UserError(
            f"cannot resume: {', '.join(changed)} changed since the start of the run ({path}); restore "
            f"{'it' if len(changed) == 1 else 'them'}, or start a new run in another output_dir"
        )


def _changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return sorted(name for name in before | now if before.get(name) != now.get(name))


def _hashes(inputs: Iterator[Input], kind: str = "blake2b") -> dict[str, str]:
    return {each.name: file_hash(each.path, kind) for each in inputs}


def _labeled(config: FinetuneConfig) -> Iterator[Input]:
    for key, name in (("task.train", config.task.train), ("task.dev", config.task.dev)):
        if name is not None:
            path = find_labeled_file(name)
            yield Input(key, name, path)
            yield from (Input(key, str(each), each) for each in parts_of(path) if each != path)


def _finetuning_models(config: FinetuneConfig) -> Iterator[Input]:
    patterns = SENTENCE_FILES if import_task(config.task.type).head is None else ()
    yield from _model("model", Path(config.model), *patterns)
    if config.distillation is not None:
        yield from _model("distillation.teacher", resolve_model(config.distillation.teacher))


def _pretraining_models(config: PretrainConfig) -> Iterator[Input]:
    if config.model.init_from is not None:
        folder = Path(config.model.init_from)
        yield from _model("model.init_from", folder)
        objective = config.data.objective
        may_generate = objective == AUTO or OBJECTIVES[objective].generates
        if may_generate and (folder / GENERATOR).is_dir():
            yield from _model("model.init_from", folder / GENERATOR)
            yield from _matching("model.init_from", folder, DIFFERENCES)
    if config.distillation is not None:
        yield from _model("distillation.teacher", Path(config.distillation.teacher))


def _model(key: str, folder: Path, *patterns: str) -> Iterator[Input]:
    """The files of a model folder, and other files there that match `patterns`."""
    yield from (Input(key, str(path), path) for path in files_read(folder))
    yield from _matching(key, folder, *patterns)


def _matching(key: str, folder: Path, *patterns: str) -> Iterator[Input]:
    for pattern in patterns:
        yield from (Input(key, str(path), path) for path in sorted(folder.glob(pattern)))


def _general(config: PretrainConfig) -> Iterator[Input]:
    for file in list_files(config.corpus.general or [], missing_ok=True):
        yield Input("corpus.general", file.name, file.path)
