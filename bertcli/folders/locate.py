"""A model's id on the Hugging Face hub, `org/name` -> a local folder with its files."""

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import getproxies

from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.folders.init_from import with_sizes_of, with_vocabulary_of
from bertcli.folders.run_layout import RunLayout, checkpoint_model
from bertcli.folders.sentence_transformers import SENTENCE_FILES
from bertcli.system.errors import UserError
from bertcli.system.files import has_file
from bertcli.system.terminal import raw_stream, say, working
from bertcli.system.urls import refuse_elsewhere
from bertcli.tokenizer.folder import VOCABULARY_FILES

SECONDS = 10.0
"""Most seconds that the hub may take to connect, or to send more."""
_ID = re.compile(r"[\w.-]+/[\w.-]+")
_SMALL_FILES = (
    *("config.json", "tokenizer_config.json", *VOCABULARY_FILES, "merges.txt"),
    *("added_tokens.json", "special_tokens_map.json"),  # older folders register tokens there
    *SENTENCE_FILES,
)
_SAFETENSORS = ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors")
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin")


def is_hub_id(name: str) -> bool:
    """True if this can be a model on the hub: `word/word`, where the first is not a local folder."""
    return _ID.fullmatch(name) is not None and not Path(name).parent.exists()


def download(name: str) -> Path:
    """Download a model to the local cache; once it is there, no network is needed.

    Other files than sizes, tokenizer, pooling and weights are left out. Weights are safetensors, or the older
    format if there are none. Raises `UserError` if the hub has no such model, or cannot be reached and the
    cache lacks it.
    """
    from huggingface_hub import snapshot_download

    say(f"{name}: looking for it on the Hugging Face hub; Ctrl-C stops")
    try:
        with (
            _limited_waiting(),
            contextlib.redirect_stderr(raw_stream(sys.stderr)),
            working(lambda: "" if sys.stderr.isatty() else f"{name}: waiting for the hub; Ctrl-C stops"),
        ):
            # The progress bars need a carriage return.
            folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_SAFETENSORS]))
            if not any(path for pattern in _SAFETENSORS for path in folder.glob(pattern)):
                folder = Path(snapshot_download(name, allow_patterns=[*_SMALL_FILES, *_PICKLES]))
    except MemoryError:
        raise
    except Exception as error:  # any of huggingface_hub and its HTTP library: a proxy, a bad address
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise UserError(
            f"{name}: no such local folder, and not available from the Hugging Face hub: {reason}.{_proxy()} "
            f"Give a folder; or download the model on a machine with a network (hf download {name} "
            f"--local-dir FOLDER), copy that folder here, and give it."
        ) from None
    return folder


def _proxy() -> str:
    """A sentence on the proxy that the environment names; its address may hold a password."""
    if not getproxies():
        return ""
    names = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"
    return f" The request goes through a proxy ({names}): are its address and its password right?"


@contextlib.contextmanager
def _limited_waiting() -> Iterator[None]:
    """A time limit for requests that have none: some of huggingface_hub would wait for ever."""
    from huggingface_hub import get_session

    def limit(request: Any) -> None:
        given = request.extensions.get("timeout", {})
        request.extensions["timeout"] = {
            each: min(SECONDS, given.get(each) or SECONDS) for each in ("connect", "read", "write", "pool")
        }

    session = get_session()
    hooks = session.event_hooks
    session.event_hooks = {**hooks, "request": [*hooks["request"], limit]}
    try:
        yield
    finally:
        session.event_hooks = hooks


WEIGHT_FILES = (*_SAFETENSORS[:2], *_PICKLES[:2])
"""Weight files in the order of preference; an index lists the files of a model in several parts."""
GENERATOR = "generator"
"""The subfolder of a discriminator's folder that holds the model which replaces words."""
ONNX_FOLDER, ONNX_FILE, QUANTIZED_FILE = "onnx", "model.onnx", "model_quantized.onnx"
_ONNX_FILES = (f"{ONNX_FOLDER}/{ONNX_FILE}", ONNX_FILE, f"{ONNX_FOLDER}/{QUANTIZED_FILE}")
"""ONNX files in the order of preference."""
_ONNX_ADVICE = (
    "an ONNX file, which only bertcli predict, embed, similarity and serve run, and bertcli.load; give the "
    "model that it was exported from"
)


@dataclass(frozen=True)
class OnnxPlace:
    """An ONNX file, and the model folder that it belongs to, with `config.json` and the tokenizer."""

    file: Path
    folder: Path


def find_onnx(path: Path) -> OnnxPlace | None:
    """The ONNX file that MODEL is, or holds if it is a folder without other weights; else None.

    Raises `UserError` for a file without `config.json` or tokenizer beside it, or in the folder above.
    """
    if path.suffix == ".onnx" and has_file(path):
        above = [path.absolute().parent, path.absolute().parent.parent]
        folder = next((each for each in above if has_file(each / "config.json")), above[0])
        return OnnxPlace(path, _described(folder, path))
    if not path.is_dir() or any(has_file(path / name) for name in WEIGHT_FILES):
        return None
    file = next((path / name for name in _ONNX_FILES if has_file(path / name)), None)
    return None if file is None else OnnxPlace(file, _described(path, file))


def _described(folder: Path, file: Path) -> Path:
    missing = [] if has_file(folder / "config.json") else ["config.json"]
    if not any(has_file(folder / name) for name in VOCABULARY_FILES):
        missing.append(f"a vocabulary ({' or '.join(VOCABULARY_FILES)})")
    if missing:
        raise UserError(
            f"{file}: {' and '.join(missing)} must be beside it, or in the folder above; copy it there"
        )
    return folder


def resolve_model(path: Path | str) -> Path:
    """A run folder, its `model/`, a checkpoint, any Hugging Face folder or a hub id -> the model folder.

    A run folder gives its finished `model/`, else the model of its newest checkpoint. A local path always
    comes before the hub. Raises `UserError` if there is nothing, or no model in it.
    """
    path = Path(path)
    if not path.exists() and is_hub_id(str(path)):
        path = download(str(path))
    if not path.exists():
        raise UserError(
            f"{path}: no such folder. MODEL is a run folder, a model folder, a checkpoint, or a model's "
            f"id on the Hugging Face hub (org/name)."
        )
    if path.suffix == ".onnx" and has_file(path):
        raise UserError(f"{path}: is {_ONNX_ADVICE}")
    if not path.is_dir():
        raise UserError(f"{path}: is a file. MODEL is the folder that holds config.json and the weights.")
    run = RunLayout(path)
    candidates = [path, run.model, *map(checkpoint_model, run.steps())]
    found = next((folder for folder in candidates if has_file(folder / "config.json")), None)
    if found is None and has_file(run.config):
        raise UserError(
            f"{path}: a run that has not saved a model yet (no model/, no checkpoints/step-*/model). "
            f"Let it reach its first checkpoint, or continue it with --resume"
        )
    check_folder(found or path)
    return found or path


_PLAIN_NAMES = re.compile(r"model|onnx|checkpoints|step-\d+|.*\.onnx")
"""Names of folders and files inside a run, which do not say what model it is."""


def model_names(given: Sequence[str]) -> dict[str, Path]:
    """MODEL or NAME=MODEL, several times -> the models by name, which is that of the folder, or the hub id.

    Raises `UserError` for a URL, and for two models with one name.
    """
    found: dict[str, Path] = {}
    for each in given:
        name, equals, model = each.partition("=")
        if not equals or "/" in name or Path(each).exists():
            name, model = "", each
        path = Path(refuse_elsewhere(model))
        if not name and not path.exists() and is_hub_id(model):
            name = model
        parts = [part for part in reversed(path.absolute().parts) if not _PLAIN_NAMES.fullmatch(part)]
        name = name or parts[0]
        if name in found:
            raise UserError(f"{found[name]} and {path} have the same name; give one another: NAME={path}")
        found[name] = path
    return found


def locate_init_from(config: PretrainConfig) -> PretrainConfig:
    """`config` with model folders as `model.init_from` and `distillation.teacher`, which may have named a
    run, a checkpoint or a hub id.

    Sizes and vocabulary become those of the folder (`folders.init_from.with_sizes_of`). The vocabulary of a
    new student becomes that of its teacher.
    """
    if config.distillation is not None:
        teacher = resolve_model(config.distillation.teacher)
        config = with_values(config, {"distillation": {"teacher": str(teacher)}})
        if config.model.init_from is None:
            config = with_vocabulary_of(config, teacher)
    if config.model.init_from is None:
        return config
    folder = resolve_model(config.model.init_from)
    return with_sizes_of(with_values(config, {"model": {"init_from": str(folder)}}), folder)


def check_generator(folder: Path) -> None:
    """Raise `UserError` if the folder of a discriminator has no generator."""
    if not has_file(folder / GENERATOR / "config.json"):
        raise UserError(
            f"{folder}: data.objective: rtd goes on with both of its models, and there is no generator in "
            f"{folder / GENERATOR}. Put the generator's folder there, or set data.objective to mlm and go on "
            "from the generator alone"
        )


def check_folder(folder: Path) -> Path:
    """The weight file of a complete model folder. Raises `UserError` that lists what is missing."""
    missing = []
    if not has_file(folder / "config.json"):
        missing.append("config.json (the sizes)")
    weights = next((folder / name for name in WEIGHT_FILES if has_file(folder / name)), None)
    if weights is None:
        missing.append(f"weights (one of {', '.join(WEIGHT_FILES)})")
    if not any(has_file(folder / name) for name in VOCABULARY_FILES):
        missing.append(f"a vocabulary (one of {', '.join(VOCABULARY_FILES)})")
    onnx = [name for name in _ONNX_FILES if has_file(folder / name)]
    if weights is None and onnx:
        raise UserError(f"{folder}: holds {onnx[0]}, {_ONNX_ADVICE}")
    if weights is None and any(folder.glob("*.index")):
        raise UserError(
            f"{folder}: holds a TensorFlow checkpoint; convert it first: bertcli convert {folder} DESTINATION"
        )
    if missing or weights is None:
        raise UserError(
            f"{folder}: not a complete model folder; missing: {'; '.join(missing)}. Give a folder that "
            f"bertcli pretrain or transformers' save_pretrained wrote, with the tokenizer saved there too."
        )
    return weights
