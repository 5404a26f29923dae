"""A path -> the pipeline of its tokenizer and its special tokens, as its files mean them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tokenizers

from bertcli.errors import UserError
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.files import has_file, plain_text
from bertcli.text import pipelines, wordpiece
from bertcli.text.declared import Declared, check_file, read_declared, special_names
from bertcli.text.limits import check_pipeline
from bertcli.text.panics import survive
from bertcli.text.tokenizer_class import check_kind, obey_folder
from bertcli.text.tokenizer_files import (
    OTHER_VOCABULARIES,
    Normalization,
    find_tokenizer_file,
    read_vocabulary,
)

_BESIDE = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""What a tokenizer's folder says besides its vocabulary."""


@dataclass(frozen=True)
class Pipeline:
    """A tokenizer of the library, the file it came from, and its special tokens by role."""

    backend: tokenizers.Tokenizer
    where: str
    names: Mapping[str, str]


def read_pipeline(path: Path, given: Normalization) -> Pipeline:
    """Read a `vocab.txt`, a `tokenizer.json`, or a folder that holds them or another vocabulary.

    `given` applies to a vocab.txt without options beside it. Raises `UserError` where there is no tokenizer,
    it is not supported, or files disagree.
    """
    file, normalization = find_tokenizer_file(path, given)
    declared = None if file == path else read_declared(file)
    names = wordpiece.NAMES if declared is None else special_names(declared)
    if file.name in OTHER_VOCABULARIES:
        backend = _build(file, declared, names)
    elif file.suffix == ".json":
        backend = survive(lambda: _read_json(file), str(file), quietly=True)
    else:
        if declared is not None:
            check_file(file, declared)
        backend = wordpiece.build(read_vocabulary(file), normalization)
    if declared is None:
        check_kind(backend, str(file))
    else:
        survive(lambda: obey_folder(backend, file, declared, names=names), str(file), quietly=True)
    return Pipeline(backend, str(file), names)


def tokenizer_files(path: Path) -> list[Path]:
    """The files that `read_pipeline` reads at `path`, and `config.json`, if it is in a folder."""
    file, _ = find_tokenizer_file(path, Normalization())
    if file == path:
        return [file]
    parts = {facts.files[0]: facts.files for facts in TOKENIZERS.values() if facts.files}
    names = dict.fromkeys((*parts.get(file.name, (file.name,)), *_BESIDE))
    return [each for name in names if has_file(each := file.with_name(name))]


def _build(file: Path, declared: Declared | None, names: Mapping[str, str]) -> tokenizers.Tokenizer:
    if declared is None:
        raise UserError(
            f"{file}: its folder has no config.json, which says how it is read. Copy that file too"
        )
    check_file(file, declared)
    build = pipelines.build
    return survive(
        lambda: build(file, declared.facts, names, config=declared.config), str(file), quietly=True
    )


def _read_json(file: Path) -> tokenizers.Tokenizer:
    try:
        text = plain_text(file)
        check_pipeline(text, str(file))
        return tokenizers.Tokenizer.from_str(text)
    except UserError:
        raise
    except Exception as error:  # the library raises a bare Exception, with the reason in words
        raise UserError(f"{file}: not a tokenizer.json of the tokenizers library: {error}") from None
