"""The tokenizer class of transformers that a folder names, and its effect on the tokenizer.

`AutoTokenizer` reads the name of the class from `tokenizer_config.json`. `BertTokenizer` rebuilds BERT's own
pipeline around the vocabulary and ignores `tokenizer.json`; `PreTrainedTokenizerFast` obeys that file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from bertcli.errors import UserError
from bertcli.text.added_tokens import register_tokens
from bertcli.text.json_file import read_json
from bertcli.text.wordpiece import NAMES, OBEYS, REBUILDING, REBUILDS, differences

_OBEY = {OBEYS, "TokenizersBackend"}
_JAPANESE = {"word_tokenizer_type": ("basic", None), "subword_tokenizer_type": ("wordpiece", None)}
"""Keys of `BertJapaneseTokenizer`, and the values with which it is plain WordPiece."""


def obey_folder(backend: tokenizers.Tokenizer, file: Path) -> dict[str, str]:
    """Change `backend`, read from `file`, to what transformers loads from the folder of `file`.

    Returns its special tokens by role. A folder with neither `tokenizer_config.json` nor `config.json`
    changes nothing. Raises `UserError` where the folder needs what bertcli does not support, or its files
    disagree.
    """
    where = file.with_name("tokenizer_config.json")
    config = read_json(where) if where.is_file() else {}
    model = file.with_name("config.json")
    if not where.is_file() and not model.is_file():
        return NAMES
    outer = read_json(model) if model.is_file() else {}
    name = config.get("tokenizer_class") or outer.get("tokenizer_class")
    rebuilds = _rebuilds(name, config, where)
    names = dict(NAMES)
    for key, token in NAMES.items():
        given = config.get(key) or token
        content = given.get("content") if isinstance(given, dict) else given
        if not isinstance(content, str) or (rebuilds and content != token):
            raise UserError(f"{where}: {key} is {given!r}; BERT's is {token}. Give a BERT tokenizer's files")
        names[key] = content
    if file.suffix == ".json" and rebuilds:
        _check_rebuilt(file, where, json.loads(backend.to_str()), config=config)
    elif not rebuilds and file.suffix != ".json":
        raise UserError(
            f"{where}: names the class {name}, which reads a tokenizer.json, but there is none. Copy it too, "
            f"or set tokenizer_class to {REBUILDS}"
        )
    before = {token.content for token in backend.get_added_tokens_decoder().values()}
    registered = register_tokens(backend, file.parent, config, own=names.values())
    lost = sorted(before - registered - set(names.values()))
    if rebuilds and lost and "added_tokens_decoder" in config:
        raise UserError(
            f"{file} and {where} disagree: {', '.join(map(repr, lost))} is registered in the first, but not "
            f"in added_tokens_decoder of the second, which {name or REBUILDS} reads. Correct one of them"
        )
    if rebuilds:
        backend.post_processor = None  # the class makes its own rows, `wordpiece.usual_rows`
    return names


def _rebuilds(name: Any, config: Mapping[str, Any], where: Path) -> bool:
    """Whether the class rebuilds BERT's pipeline. Raises `UserError` for an unsupported class."""
    for key, plain in _JAPANESE.items():
        if config.get(key) not in plain:
            raise UserError(
                f"{where}: {key}: {config[key]!r} cuts Japanese text by another library (such as MeCab), "
                "which bertcli does not support. Give a model whose tokenizer is a plain WordPiece"
            )
    if name is None or str(name).removesuffix("Fast") in REBUILDING:
        return True
    if name in _OBEY:
        return False
    raise UserError(
        f"{where}: the tokenizer is a {name}, which bertcli does not support. Give a BERT tokenizer; or, if "
        f"tokenizer.json alone defines the tokenizer, set tokenizer_class to {OBEYS}"
    )


def _check_rebuilt(file: Path, where: Path, pipeline: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Raise `UserError` where `tokenizer.json` is not what the class rebuilds from its options."""
    said = f"{config.get('tokenizer_class') or REBUILDS} in {where}" if where.is_file() else REBUILDS
    if found := differences(pipeline):
        raise UserError(
            f"{file} is not BERT's pipeline ({'; '.join(found)}), but {said} means that pipeline and ignores "
            f"the file. If the model was trained with the file, set tokenizer_class to {OBEYS} in "
            "tokenizer_config.json; if not, remove the file and keep vocab.txt"
        )
    normalizer = pipeline["normalizer"]
    has = _choices(normalizer["lowercase"], normalizer["strip_accents"], normalizer["handle_chinese_chars"])
    says = _choices(*(config.get(key) for key in has))
    if unlike := [key for key in has if has[key] != says[key]]:
        raise UserError(
            f"{file} and {where} disagree: "
            + "; ".join(f"{key} is {has[key]} in the first, {says[key]} in the second" for key in unlike)
            + " (a missing value means true; a missing strip_accents, the same as do_lower_case). bertcli "
            "cannot know which of them the model was trained with: write the right values into both"
        )


def _choices(lowercase: Any, strip_accents: Any, split_chinese: Any) -> dict[str, str]:
    """The effective values of three options, as JSON."""
    lowercase = True if lowercase is None else lowercase
    strips = lowercase if strip_accents is None else strip_accents
    split_chinese = True if split_chinese is None else split_chinese
    values = {"do_lower_case": lowercase, "strip_accents": strips, "tokenize_chinese_chars": split_chinese}
    return {key: json.dumps(value) for key, value in values.items()}
