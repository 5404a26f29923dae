"""What the JSON files beside a tokenizer's file say about it: class of transformers, model type, tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.families.tokenizers import BERT, TOKENIZERS, TokenizerFacts
from bertcli.files import has_file
from bertcli.text.json_file import read_json
from bertcli.text.wordpiece import OBEYS, REBUILDING, REBUILDS

_OBEY = {OBEYS, "TokenizersBackend"}
_CLASSES = {name: facts for facts in TOKENIZERS.values() for name in facts.classes}
_JAPANESE = {"word_tokenizer_type": ("basic", None), "subword_tokenizer_type": ("wordpiece", None)}
"""Keys of `BertJapaneseTokenizer`, and the values with which it is plain WordPiece."""


@dataclass(frozen=True)
class Declared:
    """What the JSON files beside a tokenizer's file say.

    Attributes:
        where: the path of `tokenizer_config.json`, which may be absent.
        config: its content.
        name: the class of transformers; None: none is named.
        facts: of the class; if none is named, or one that obeys tokenizer.json, of the model type.
        model: the facts of the model type.
        rebuilds: whether the class is one of BERT's, which ignore `tokenizer.json`.
    """

    where: Path
    config: Mapping[str, Any]
    name: str | None
    facts: TokenizerFacts
    model: TokenizerFacts
    rebuilds: bool

    @property
    def obeys(self) -> bool:
        """Whether the class takes all from `tokenizer.json`; transformers forces it for some model types."""
        forced = self.model.kind != "WordPiece" and not self.model.classes
        return forced or self.name in _OBEY


def model_facts(folder: Path) -> TokenizerFacts:
    """The facts of the model type in the folder's `config.json`; BERT's without one."""
    path = folder / "config.json"
    model_type = read_json(path).get("model_type") if has_file(path) else None
    return TOKENIZERS.get(str(model_type), BERT)


def read_declared(file: Path) -> Declared | None:
    """What the folder of `file` says; None for a folder with neither tokenizer_config.json nor config.json.

    Raises `UserError` for a class that is not supported.
    """
    where, model = file.with_name("tokenizer_config.json"), file.with_name("config.json")
    if not has_file(where) and not has_file(model):
        return None
    config = read_json(where) if has_file(where) else {}
    outer = read_json(model) if has_file(model) else {}
    name = config.get("tokenizer_class") or outer.get("tokenizer_class")
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
    """The special tokens by role. Raises `UserError` where a name is no text, or not BERT's for its class."""
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
    """Raise `UserError` where the class does not read `file`, a vocabulary without its pipeline."""
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
