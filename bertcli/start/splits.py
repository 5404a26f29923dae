"""A training file -> the file for evaluation beside it, by its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bertcli.errors import UserError
from bertcli.samples import LABELED
from bertcli.start.files import Seen, full_suffix

_DEV = ("dev", "valid", "validation", "val", "eval")
_WORD = re.compile(
    r"(?<![a-z])(train(ing)?|dev|valid(ation)?|val|eval|test)(?![a-z])|^(train|dev|test)", re.IGNORECASE
)


def split_files(seen: Sequence[Seen]) -> tuple[Seen, str | None, list[str]]:
    """The training file of several, the name of the one to evaluate on, and the names of others for later.

    Raises `UserError` where none of several files is the training file by its name.
    """
    parts = [split_of(each.path) for each in seen]
    train = next(
        [each for each, part in zip(seen, parts, strict=True) if part == wanted]
        for wanted in ("train", "", *parts)
        if wanted in parts
    )
    if len(train) > 1:
        listed = ", ".join(each.path.name for each in train[:5])
        raise UserError(
            f"fine-tuning learns from one file, and these are {len(train)}: {listed}; give one of them, or "
            "put their rows into one. If they are a corpus, give --for pretrain"
        )
    own = train[0]
    given = [each.path for each in seen if each is not own]
    beside = [*given, *(path for path in _beside(own) if path not in given)]
    dev = next((path for path in beside if split_of(path) == "dev"), None)
    test = [path for path in beside if split_of(path) == "test"]
    return own, None if dev is None else _shown(dev), list(map(_shown, test))


def split_of(path: Path) -> str:
    """`train`, `dev` or `test` by the name of a file; else an empty text."""
    found = _WORD.search(_stem(path))
    word = found[0].lower() if found else ""
    return "dev" if word in _DEV else "train" if word.startswith("train") else word


def _beside(train: Seen) -> list[Path]:
    """Files for evaluation in the folder of the training file: their names differ in the split alone."""
    own = _without_split(train.path)
    return [
        path
        for path in sorted(train.path.parent.iterdir())
        if full_suffix(path) == full_suffix(train.path)
        and split_of(path) in ("dev", "test")
        and path.is_file()
        and path != train.path
        and _without_split(path) in (own, "")
    ]


def _stem(path: Path) -> str:
    return path.name.removesuffix(full_suffix(path))


def _without_split(path: Path) -> str:
    return re.sub(r"[\W_]+", "", _WORD.sub("", _stem(path))).lower()


def _shown(path: Path) -> str:
    """A file as a config names it: a bundled sample by its name."""
    return next((name for name, sample in LABELED.items() if sample == path), str(path))
