"""The JSON files beside a tokenizer's file -> its class, model type and registered tokens."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from bertcli.families.tokenizers import BERT, TOKENIZERS, TokenizerFacts
from bertcli.system.errors import UserError
from bertcli.system.files import has_file
from bertcli.system.formats import read_json_if_there
from bertcli.tokenizer.wordpiece import OBEYS, REBUILDING, REBUILDS

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
        own: the five special tokens with roles; in a text, they are read as plain text.

    Returns:
        The registered tokens.

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


def _registered(folder: Path, config: Mapping[str, Any], own: Collection[str]) -> Registered:
    """The registered tokens in the order of their ids; tokens without an id come last."""
    found: Registered = {}
    special = list(_special(config))
    if "added_tokens_decoder" in config:
        for token_id, value in config["added_tokens_decoder"].items():
            token = AddedToken(**{key: part for key, part in value.items() if key != "__type"})
            found[token.content] = token, int(token_id)
    else:
        special += _special(read_json_if_there(folder / "special_tokens_map.json"))
        contents = {*own, *(token.content for token in special)}
        for content, token_id in read_json_if_there(folder / "added_tokens.json").items():
            is_special = content in contents
            found[content] = AddedToken(content, normalized=not is_special, special=is_special), int(token_id)
    for token in special:
        found.setdefault(token.content, (token, None))
    return dict(sorted(found.items(), key=lambda item: (item[1][1] is None, item[1][1] or 0)))


def _special(values: Mapping[str, Any]) -> Iterator[AddedToken]:
    """The tokens under `cls_token`, `extra_special_tokens` and similar keys."""
    extra = values.get("extra_special_tokens") or values.get("additional_special_tokens") or []
    if not isinstance(extra, list | Mapping):
        raise TypeError(f"additional_special_tokens: a list was expected, not {extra!r}")
    listed = list(extra.values()) if isinstance(extra, Mapping) else list(extra)
    for value in [*(value for key, value in values.items() if key.endswith("_token")), *listed]:
        if isinstance(value, str) and value:
            yield AddedToken(value, normalized=False, special=True)
        elif isinstance(value, Mapping):
            flags = {key: part for key, part in value.items() if key not in ("__type", "special")}
            yield AddedToken(**flags, special=True)


def _place(token: AddedToken) -> dict[str, bool]:
    return {flag: getattr(token, flag) for flag in _PLACE}


_OBEY = {OBEYS, "TokenizersBackend"}
_CLASSES = {name: facts for facts in TOKENIZERS.values() for name in facts.classes}
_JAPANESE = {"word_tokenizer_type": ("basic", None), "subword_tokenizer_type": ("wordpiece", None)}
"""Keys of `BertJapaneseTokenizer`, and the values that make it plain WordPiece."""


@dataclass(frozen=True)
class Declared:
    """What the JSON files beside a tokenizer's file say.

    Attributes:
        where: the path of `tokenizer_config.json`; the file may be absent.
        config: the content of that file.
        name: the class of transformers; None if no class is named.
        facts: the facts of the class; those of the model type if no class is named, or if the class obeys
            `tokenizer.json`.
        model: the facts of the model type.
        rebuilds: true if the class is one of BERT's, which ignore `tokenizer.json`.
    """

    where: Path
    config: Mapping[str, Any]
    name: str | None
    facts: TokenizerFacts
    model: TokenizerFacts
    rebuilds: bool

    @property
    def obeys(self) -> bool:
        """True if the class reads all from `tokenizer.json`; for some model types, any class does so."""
        forced = self.model.kind != "WordPiece" and not self.model.classes
        return forced or self.name in _OBEY


def model_facts(folder: Path) -> TokenizerFacts:
    """The facts of the model type in the folder's `config.json`; BERT's facts if there is no such file."""
    return TOKENIZERS.get(str(read_json_if_there(folder / "config.json").get("model_type")), BERT)


def read_declared(file: Path) -> Declared | None:
    """Read what the folder of `file` says; None if it has neither `tokenizer_config.json` nor `config.json`.

    Raises `UserError` if the class is not supported.
    """
    where, model = file.with_name("tokenizer_config.json"), file.with_name("config.json")
    if not has_file(where) and not has_file(model):
        return None
    config = read_json_if_there(where)
    name = config.get("tokenizer_class") or read_json_if_there(model).get("tokenizer_class")
    if name is not None and not isinstance(name, str):
        raise unsupported(where, repr(name))
    own = model_facts(file.parent)
    for key, plain in _JAPANESE.items():
        if config.get(key) not in plain:
            raise UserError(
                f"{where}: {key}: {config[key]!r} cuts Japanese text by another library (such as MeCab), "
                "which bertcli does not support. Give a model whose tokenizer is a plain WordPiece"
            )
    bare = str(name).removesuffix("Fast")
    declared = Declared(where, config, name, facts=own, model=own, rebuilds=False)
    if declared.obeys:
        return declared
    if bare in REBUILDING or (name is None and own.kind == "WordPiece"):
        return replace(declared, facts=BERT, rebuilds=True)
    if name is None:
        return declared
    if bare in _CLASSES:
        return replace(declared, facts=_CLASSES[bare])
    raise unsupported(where, name)


def special_names(declared: Declared) -> dict[str, str]:
    """The special tokens by role.

    Raises `UserError` if a token is not a string, differs from BERT's where the class is BERT's, or has the
    same text as the mask token.
    """
    names = {}
    for key, token in declared.facts.names.items():
        given = declared.config.get(key) or token
        content = given.get("content") if isinstance(given, dict) else given
        if declared.rebuilds and content != token:
            raise UserError(
                f"{declared.where}: {key} is {given!r}; BERT's is {token}. Give a BERT tokenizer's files"
            )
        if not isinstance(content, str):
            raise UserError(f"{declared.where}: {key} is {given!r}; expected a token's text, such as {token}")
        names[key] = content
    mask = names["mask_token"]
    if same := [role for role, token in names.items() if token == mask and role != "mask_token"]:
        raise UserError(
            f"{declared.where}: mask_token and {same[0]} are both {mask!r}, so no text could be masked. "
            "Write the tokens that the model was trained with"
        )
    return names


def check_file(file: Path, declared: Declared) -> None:
    """Raise `UserError` if the class does not read `file`, a vocabulary without its pipeline."""
    if declared.obeys:
        raise UserError(
            f"{declared.where}: names the class {declared.name}, which reads a tokenizer.json, but there is "
            f"none. Copy it too; or, if the vocabulary is of BERT's kind, set tokenizer_class to {REBUILDS}"
        )
    if file.name not in declared.facts.files:
        own = " and ".join(declared.facts.files)
        advice = (
            f"If the model was trained with this vocabulary of BERT's kind, set tokenizer_class to "
            f"{REBUILDS} in {declared.where}; if not, copy the model's own files"
            if file.name in BERT.files
            else "Correct tokenizer_class in tokenizer_config.json or model_type in config.json, or copy the "
            "model's own files"
        )
        raise UserError(
            f"{file}: {declared.name or 'the class of this model type'} does not read this file, but "
            f"{own or 'a tokenizer.json'}. {advice}"
        )


def unsupported(where: Path, name: Any) -> UserError:
    """The error for a class that is not supported."""
    return UserError(
        f"{where}: the tokenizer is a {name}, which bertcli does not support. Give a BERT tokenizer; or, if "
        f"tokenizer.json alone defines the tokenizer, set tokenizer_class to {OBEYS}"
    )
