"""The work of `bertcli init`: write a config for the user's files, and name the command that reads it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from bertcli.advice.init.files import KIND_NAMES, Found, find_files, suffix_of
from bertcli.advice.init.finetuning import write_finetuning
from bertcli.advice.init.kinds import LABELED, TEXTS
from bertcli.advice.init.labeled import split_of
from bertcli.advice.init.pretraining import write_pretraining
from bertcli.advice.init.task import can_be_labeled, doubtful_columns
from bertcli.advice.init.written import Purpose, Request, Written
from bertcli.config.keys import CONFIGS
from bertcli.config.load import check_config
from bertcli.config.yaml_text import parse_yaml
from bertcli.system.errors import UserError
from bertcli.system.files import looked_in
from bertcli.system.terminal import Report

_LISTED = 3
_TABLES = (".tsv", ".tab", ".csv", ".conll", ".conllu", ".bio", ".iob")
"""Suffixes of files that are not plain text."""


def init(names: Sequence[str], output: Path, request: Request, report: Report) -> Written:
    """Write a config for these files to `output`.

    Args:
        names: files, folders, globs, or a bundled sample.
        report: a function that takes lines for the user.

    Raises:
        UserError: `output` exists or cannot be written; the files give no config; options exclude each other.
    """
    _check_output(output)
    if request.model is not None and request.family is not None:
        raise UserError("give --model or --family, not both: the model has its own family")
    found = find_files(names, output)
    for line in found.left_out[:_LISTED]:
        report(f"left out: {line}")
    if len(found.left_out) > _LISTED:
        report(f"left out: and {len(found.left_out) - _LISTED:,} more files")
    chosen = _purpose(found, request.purpose, report)
    for option in ("family", "device"):
        if chosen == "finetune" and getattr(request, option) is not None:
            raise UserError(
                f"--{option}: is for pretraining, and these files are for fine-tuning; leave it out"
            )
    write = write_pretraining if chosen == "pretrain" else write_finetuning
    written = write(found, _output_dir(names), request, report)
    check_config(CONFIGS[chosen], parse_yaml(written.text, "the config"), "the config")
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(written.text)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {(error.strerror or str(error)).lower()}") from None
    return written


def _check_output(output: Path) -> None:
    if output.exists() or output.is_symlink():
        raise UserError(f"{output}: exists already, and is left as it is; name another file with --output")
    if not output.parent.is_dir():
        raise UserError(f"{output}: there is no folder {output.parent}{looked_in(output)}; make it first")
    if not os.access(output.parent, os.W_OK):
        raise UserError(
            f"{output}: the folder {output.parent} cannot be written; name another one with --output"
        )


def _purpose(found: Found, given: Purpose | None, report: Report) -> Purpose:
    """The purpose of the files; if it is a guess, a line says how to choose the other one."""
    kind, path = found.kind, found.seen[0].path
    if kind == "json":
        raise UserError(
            f"{path}: is JSON of another form than those that are read: a list of objects or of texts, an "
            'object a line, or SQuAD\'s; write it as a list of objects: [{"text": ..., "label": ...}, ...]'
        )
    is_sure = kind in ("squad", "brat") or suffix_of(path) in _TABLES
    if given == "pretrain" and kind in LABELED and is_sure:
        raise UserError(
            f"{path}: is {KIND_NAMES[kind]}; a corpus is plain text, JSON or Parquet. Write the texts to a "
            "file, a text a paragraph"
        )
    if given == "finetune" and kind in TEXTS:
        raise UserError(
            f"{path}: is {KIND_NAMES[kind]}, without labels; a labeled file is a table (.tsv, .csv, .jsonl, "
            ".parquet), a list of JSON objects, lines of fastText or TREC, CoNLL, SQuAD JSON or brat's files"
        )
    if given is not None:
        return given
    if kind in TEXTS:
        return "pretrain"
    if kind in LABELED:
        if not is_sure:
            report(f"taken as {KIND_NAMES[kind]} to fine-tune on; if it is plain text: --for pretrain")
        return "finetune"
    if can_be_labeled(found.seen[0]):
        report("taken as labeled rows to fine-tune on; for a corpus to pretrain on: --for pretrain")
        return "finetune"
    doubtful = doubtful_columns(found.seen[0])
    unread = f", without {', '.join(doubtful)}, which may be labels" if doubtful else ""
    report(f"taken as a corpus to pretrain on{unread}; for labeled rows to fine-tune on: --for finetune")
    return "pretrain"


def _output_dir(names: Sequence[str]) -> str:
    """A new folder in `runs/`, named after the file or folder; names of splits and patterns are skipped."""
    path = Path(names[0]).absolute()
    own = [part.partition(".")[0] for part in (path.name, path.parent.name) if not set(part) & set("*?[")]
    name = next((part for part in own if part and not split_of(Path(part))), "mine")
    stem = re.sub(r"[^\w-]+", "-", name).strip("-") or "mine"
    numbered = (f"runs/{stem}" if number == 1 else f"runs/{stem}-{number}" for number in range(1, 10**6))
    return next(folder for folder in numbered if not Path(folder).exists())
