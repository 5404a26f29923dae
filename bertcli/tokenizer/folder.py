"""A path -> the pipeline and the special tokens of its tokenizer, as its files and its class define them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import pre_tokenizers, processors

from bertcli.families.tokenizers import TOKENIZERS, TokenizerFacts
from bertcli.folders.run_layout import RunLayout
from bertcli.system.errors import UserError
from bertcli.system.files import has_file, plain_bytes, plain_text
from bertcli.system.formats import read_json
from bertcli.tokenizer import declarations, pipelines, wordpiece
from bertcli.tokenizer.frame import read_frame
from bertcli.tokenizer.limits import check_pipeline, survive
from bertcli.tokenizer.wordpiece import OBEYS, REBUILDS, Normalization, bert_part

OTHER_VOCABULARIES = tuple(
    {facts.files[0]: None for facts in TOKENIZERS.values() if facts.kind != "WordPiece" and facts.files}
)
VOCABULARY_FILES = ("tokenizer.json", "vocab.txt", *OTHER_VOCABULARIES)
"""The vocabulary files in order of preference; those after the second need the folder's `config.json`."""


def find_tokenizer_file(path: Path, given: Normalization) -> tuple[Path, Normalization]:
    """The tokenizer's file at `path`, and the normalization for a `vocab.txt`.

    `path` is the file, a folder that holds one, or a run; a run's model is preferred to its store.
    """
    if has_file(path):
        if path.name in OTHER_VOCABULARIES:
            raise UserError(
                f"{path}: this file alone does not say how it is read. Give its folder, with the model's "
                "config.json"
            )
        return path, given
    if not path.is_dir():
        raise UserError(
            f"{path}: no such tokenizer; expected a vocab.txt, a tokenizer.json or a folder with one"
        )
    run = RunLayout(path)  # `path` may also be a store
    for folder in (path, run.model, run.store / "tokenizer", path / "tokenizer"):
        for name in VOCABULARY_FILES:
            if has_file(folder / name):
                return folder / name, _folder_normalization(folder, given)
    raise UserError(
        f"{path}: holds neither tokenizer.json nor vocab.txt; expected one of them in a tokenizer's folder, "
        f"or another model's {', '.join(OTHER_VOCABULARIES)}"
    )


def read_vocabulary(path: Path) -> list[str]:
    """The pieces of a `vocab.txt`, one per line.

    Only a newline ends a line: U+2028 and similar characters may be pieces. Raises `UserError` if the file
    is not a vocabulary.
    """
    try:
        text = plain_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 at byte {error.start}; a vocab.txt is UTF-8, a piece a line"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    tokens = [line.removesuffix("\r") for line in text.split("\n")]
    if tokens[-1] == "":
        tokens.pop()
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens, start=1):
        if token in seen:
            raise UserError(
                f"{path}: line {number} repeats the piece {token!r} of line {seen[token]}; remove one"
            )
        seen[token] = number
    return tokens


def _folder_normalization(folder: Path, given: Normalization) -> Normalization:
    path = folder / "tokenizer_config.json"
    if not has_file(path):
        return given
    config = read_json(path)
    found = {key: config.get(key) for key in ("do_lower_case", "strip_accents", "tokenize_chinese_chars")}
    for key, value in found.items():
        if not isinstance(value, bool | None):
            raise UserError(
                f"{path}: {key}: {value!r} is neither true, false nor null; set it to one of them"
            )
    lowercase, strip_accents, split_chinese = found.values()
    return Normalization(
        lowercase=given.lowercase if lowercase is None else lowercase,
        strip_accents=strip_accents,
        split_chinese=split_chinese is not False,
    )


def obey_folder(
    backend: tokenizers.Tokenizer, file: Path, declared: declarations.Declared, names: Mapping[str, str]
) -> None:
    """Change `backend`, read from `file`, to the tokenizer that the folder of `file` defines.

    Raises `UserError` if the folder needs something that bertcli does not support, or if its files disagree.
    """
    where, config, new_rows = declared.where, declared.config, False
    if file.suffix == ".json":
        kind = type(backend.model).__name__
        if declared.rebuilds:
            check_kind(backend, str(file))
            _check_rebuilt(file, where, json.loads(backend.to_str()), config=config)
        elif not declared.obeys and kind == declared.facts.kind:
            new_rows = _obey_options(backend, file, declared) or declared.facts.class_errs
        elif not declared.obeys and declared.model.kind == "WordPiece":
            raise declarations.unsupported(where, declared.name)
    before = {token.content for token in backend.get_added_tokens_decoder().values()}
    registered = declarations.register_tokens(backend, file.parent, config, own=names.values())
    lost = sorted(before - registered - set(names.values()))
    if declared.rebuilds and lost and "added_tokens_decoder" in config:
        raise UserError(
            f"{file} and {where} disagree: {', '.join(map(repr, lost))} is registered in the first, but not "
            f"in added_tokens_decoder of the second, which {declared.name or REBUILDS} reads. Correct one of "
            "them"
        )
    if declared.rebuilds:
        backend.post_processor = None  # the class makes its own rows, `wordpiece.usual_rows`
    elif new_rows or read_frame(backend, str(file)) is None:
        backend.post_processor = pipelines.rows(backend, declared.facts, names)


def check_kind(backend: tokenizers.Tokenizer, where: str) -> None:
    """Raise `UserError` if the model is not WordPiece; call this only if nothing names another kind."""
    kind = type(backend.model).__name__
    if kind != "WordPiece":
        raise UserError(
            f"{where}: a {kind} tokenizer; BERT's is a WordPiece. Give a BERT tokenizer's files; or, for "
            f"another model, its folder with config.json, or with tokenizer_class set to {OBEYS}"
        )


def _obey_options(backend: tokenizers.Tokenizer, file: Path, declared: declarations.Declared) -> bool:
    """Apply the options of a class that rebuilds its pipeline from them.

    The option of byte-level BPE (`add_prefix_space`) overrides the file; other options must agree with it.
    Returns true if the rows must be made again: RoBERTa's post-processor holds that option too.
    """
    config, before = declared.config, backend.pre_tokenizer
    if isinstance(before, pre_tokenizers.ByteLevel):
        before.add_prefix_space = bool(config.get("add_prefix_space", False))
        backend.pre_tokenizer = before
        return isinstance(backend.post_processor, processors.RobertaProcessing)
    normalizer, steps = backend.normalizer, declared.facts.steps
    capital, accented = map(normalizer.normalize_str, "Aé") if normalizer is not None else "Aé"
    has = {
        "do_lower_case": ("lowercase" in steps, capital == "a"),
        "keep_accents": ("accents" in steps, accented == "é"),
    }
    for key, (is_read, value) in has.items():
        given = config.get(key)
        if is_read and isinstance(given, bool) and given != value:
            raise UserError(
                f"{file} and {declared.where} disagree: {key} is {json.dumps(value)} in the first, "
                f"{json.dumps(given)} in the second. bertcli cannot know which of them the model was trained "
                "with: write the right values into both"
            )
    return False


def _check_rebuilt(file: Path, where: Path, pipeline: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Raise `UserError` if `tokenizer.json` is not the pipeline that the class rebuilds from its options."""
    said = f"{config.get('tokenizer_class') or REBUILDS} in {where}" if has_file(where) else REBUILDS
    if found := wordpiece.differences(pipeline):
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


def class_options(
    backend: tokenizers.Tokenizer, facts: TokenizerFacts, names: Mapping[str, str], two_segments: bool
) -> dict[str, Any]:
    """The keys of `tokenizer_config.json` that classes read; one that obeys `tokenizer.json` ignores most.

    A user may call any class of the model type, so the options of all of them are written. `two_segments` is
    true if the second text of a row is segment 1.
    """
    options: dict[str, Any] = {}
    if (bert := bert_part(backend.normalizer)) is not None:
        options = {
            "do_lower_case": bert.lowercase,
            "strip_accents": bert.strip_accents,
            "tokenize_chinese_chars": bert.handle_chinese_chars,
        }
    if isinstance(before := backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        options["add_prefix_space"] = before.add_prefix_space
    if facts.classes and facts.kind != "WordPiece":
        options |= {"bos_token": names["cls_token"], "eos_token": names["sep_token"]}
    segments = ["token_type_ids"] if facts.segments and two_segments else []
    return options | {"model_input_names": ["input_ids", *segments, "attention_mask"]}


_BESIDE = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""Files in a tokenizer's folder that describe the tokenizer, besides its vocabulary."""


def read_pipeline(path: Path, given: Normalization) -> tuple[tokenizers.Tokenizer, str, Mapping[str, str]]:
    """Read a `vocab.txt`, a `tokenizer.json`, or a folder that holds them or another vocabulary.

    Returns a tokenizer of the library, the file it came from, and its special tokens by role. `given` applies
    to a `vocab.txt` without options beside it. Raises `UserError` if there is no tokenizer, if it is not
    supported, or if files disagree.
    """
    file, normalization = find_tokenizer_file(path, given)
    declared = None if file == path else declarations.read_declared(file)
    names = wordpiece.NAMES if declared is None else declarations.special_names(declared)
    if file.name in OTHER_VOCABULARIES:
        if declared is None:
            raise UserError(
                f"{file}: its folder has no config.json, which says how it is read. Copy that file too"
            )
        declarations.check_file(file, declared)
        facts, config = declared.facts, declared.config
        backend = survive(lambda: pipelines.build(file, facts, names, config=config), str(file), quietly=True)
    elif file.suffix == ".json":
        backend = survive(lambda: _read_pipeline_json(file), str(file), quietly=True)
    else:
        if declared is not None:
            declarations.check_file(file, declared)
        backend = wordpiece.build(read_vocabulary(file), normalization)
    if declared is None:
        check_kind(backend, str(file))
    else:
        survive(lambda: obey_folder(backend, file, declared, names=names), str(file), quietly=True)
    return backend, str(file), names


def tokenizer_files(path: Path) -> list[Path]:
    """The files that `read_pipeline` reads at `path`; for a folder, also its `config.json`."""
    file, _ = find_tokenizer_file(path, Normalization())
    if file == path:
        return [file]
    parts = {facts.files[0]: facts.files for facts in TOKENIZERS.values() if facts.files}
    names = dict.fromkeys((*parts.get(file.name, (file.name,)), *_BESIDE))
    return [each for name in names if has_file(each := file.with_name(name))]


def _read_pipeline_json(file: Path) -> tokenizers.Tokenizer:
    try:
        text = plain_text(file)
        check_pipeline(text, str(file))
        return tokenizers.Tokenizer.from_str(text)
    except UserError:
        raise
    except Exception as error:  # the library raises a bare Exception, with the reason in words
        raise UserError(f"{file}: not a tokenizer.json of the tokenizers library: {error}") from None
