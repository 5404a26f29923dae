"""The tokens that a tokenizer's folder registers besides its vocabulary (`<ent>`), never cut in a text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from bertcli.errors import UserError
from bertcli.files import has_file
from bertcli.text.json_file import read_json

_PLACE = ("single_word", "lstrip", "rstrip", "normalized")
"""The flags that decide where a registered token is found."""

Registered = dict[str, tuple[AddedToken, int | None]]
"""Content -> the token, and its id where the files give one."""


def register_tokens(
    backend: tokenizers.Tokenizer, folder: Path, config: Mapping[str, Any], own: Collection[str]
) -> set[str]:
    """Add to `backend` the tokens that the folder's JSON files register, as transformers does.

    Args:
        config: `tokenizer_config.json`; its `added_tokens_decoder` replaces older files.
        own: the five special tokens with roles; in a text they are plain text.

    Returns:
        the registered tokens.

    Raises:
        UserError: a token's id differs from the registered one, or two files disagree on a token.
    """
    where = folder / "tokenizer_config.json"
    try:
        registered = _registered(folder, config, own)
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{where}: the tokens that it registers cannot be read: {error}") from None
    known = {token.content: token for token in backend.get_added_tokens_decoder().values()}
    for content, (token, token_id) in registered.items():
        if content not in known:
            (backend.add_special_tokens if token.special else backend.add_tokens)([token])
        elif content not in own and _place(known[content]) != _place(token):
            raise UserError(
                f"{folder / 'tokenizer.json'} and {where} disagree on the token {content!r}: "
                f"{_place(known[content])} and {_place(token)}. Write the same into both"
            )
        found = backend.token_to_id(content)
        if token_id is not None and found != token_id:
            with_ids = where if "added_tokens_decoder" in config else folder / "added_tokens.json"
            raise UserError(
                f"{with_ids}: the token {content[:60]!r} has the id {token_id} there, but {found} in the "
                "vocabulary. Copy or download the tokenizer again"
            )
    return set(registered)


def with_special(backend: tokenizers.Tokenizer, contents: set[str], special: bool) -> tokenizers.Tokenizer:
    """The same tokenizer, with its added tokens `contents` made special or not; a text may hold both."""
    data = json.loads(backend.to_str())
    for token in data["added_tokens"]:
        if token["content"] in contents:
            token["special"] = special
    return tokenizers.Tokenizer.from_str(json.dumps(data))


def _registered(folder: Path, config: Mapping[str, Any], own: Collection[str]) -> Registered:
    """The registered tokens by id; those without an id are last."""
    found: Registered = {}
    special = list(_special(config))
    if "added_tokens_decoder" in config:
        for token_id, value in config["added_tokens_decoder"].items():
            token = AddedToken(**{key: part for key, part in value.items() if key != "__type"})
            found[token.content] = token, int(token_id)
    else:
        special += _special(_read(folder / "special_tokens_map.json"))
        contents = {*own, *(token.content for token in special)}
        for content, token_id in _read(folder / "added_tokens.json").items():
            is_special = content in contents
            found[content] = AddedToken(content, normalized=not is_special, special=is_special), int(token_id)
    for token in special:
        found.setdefault(token.content, (token, None))
    return dict(sorted(found.items(), key=lambda item: (item[1][1] is None, item[1][1] or 0)))


def _special(values: Mapping[str, Any]) -> Iterator[AddedToken]:
    """The tokens under `cls_token`, `extra_special_tokens` and similar keys."""
    extra = values.get("extra_special_tokens") or values.get("additional_special_tokens") or []
    listed = list(extra.values()) if isinstance(extra, Mapping) else list(extra)
    for value in [*(value for key, value in values.items() if key.endswith("_token")), *listed]:
        if isinstance(value, str) and value:
            yield AddedToken(value, normalized=False, special=True)
        elif isinstance(value, Mapping):
            flags = {key: part for key, part in value.items() if key not in ("__type", "special")}
            yield AddedToken(**flags, special=True)


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if has_file(path) else {}


def _place(token: AddedToken) -> dict[str, bool]:
    return {flag: getattr(token, flag) for flag in _PLACE}
