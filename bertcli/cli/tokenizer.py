"""`bertcli tokenizer`: a corpus -> a vocabulary; texts -> their tokens and ids."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bertcli.cli.options import Command, argument, flag, group, option
from bertcli.config import MOST_TOKENS
from bertcli.families.family import FamilyName, TokenizerKind
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

tokenizer = group("Train a vocabulary, or use one.")


@tokenizer.command(cls=Command)
def train(
    files: list[str] = argument(..., "Files, folders, globs, or a bundled sample: classics."),
    output: Path = option(..., "The folder to write; it must not hold a tokenizer.", "--output"),
    vocab_size: int = option(30522, "Number of entries, special tokens included.", min=6, max=MOST_TOKENS),
    family: FamilyName = option(
        "bert", "Family whose special tokens are used (model.family).", metavar="NAME"
    ),
    kind: TokenizerKind | None = option(
        None, "Kind of the tokenizer (tokenizer.kind); default: the family's."
    ),
    cased: bool | None = option(None, "Keep upper case; default: the family's choice.", "--cased/--uncased"),
    strip_accents: bool = flag("Remove accents (é: e), as BERT-uncased does.", "--strip-accents"),
    format_: Literal["text", "sentences", "jsonl", "parquet"] = option(
        "text", "Format of the files (corpus.format).", "--format"
    ),
    text_key: str = option("text", "The key or column of the text."),
    encoding: str = option("utf-8", "Encoding of the files."),
    language: str = option(
        "en", "Language (corpus.language); tr, az and lt have their own rules for lower case.", metavar="CODE"
    ),
) -> None:
    """Train a vocabulary, and print its folder.

    A text of more than 256 MB is read as a uniform sample of about that size. The same text gives the same
    vocabulary, bit for bit.

    Example: bertcli tokenizer train classics --output vocabulary --vocab-size 8192
    """
    from bertcli.config import load, run
    from bertcli.config.corpus import CorpusConfig
    from bertcli.corpus import chunks, matching
    from bertcli.corpus.files import list_files
    from bertcli.families.registry import NEW

    if output.exists() and not output.is_dir():
        raise UserError(f"--output {output}: is a file; name a folder")
    names = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")
    if any((output / name).exists() or (output / name).is_symlink() for name in names):
        raise UserError(f"--output {output}: already holds a tokenizer; name another folder")
    value = {
        "files": files,
        "format": format_,
        "text_key": text_key,
        "encoding": encoding,
        "language": language,
    }
    corpus = load.check_config(CorpusConfig, value, "the options")
    found, fresh = list_files(files), NEW[family]
    for note in chunks.encoding_notes(found, corpus):
        say(note)
    options = run.TokenizerRecipe(
        vocab_size=vocab_size,
        kind=kind or fresh.tokenizer,
        lowercase=fresh.lowercase if cased is None else not cased,
        strip_accents=strip_accents,
    )
    tokenizer = matching.train_on_corpus(
        found, corpus, options, report=say, model_type=fresh.family.model_type
    )
    try:
        tokenizer.save(output)
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written: {error.strerror}") from None
    print(output)


@tokenizer.command(cls=Command)
def encode(
    tokenizer: Path = option(
        ..., "A vocab.txt, a tokenizer.json, or a folder with one, such as a run or a store.", "--tokenizer"
    ),
    texts: list[str] | None = argument(None, "Texts; default: lines of standard input.", "[TEXT]..."),
    input_: str | None = option(None, "A file with a text a line.", "--input", metavar="FILE"),
    cased: bool = flag("Keep upper case and accents, for a bare vocab.txt.", "--cased"),
    json_: bool = flag("Print one JSON object a text: text, ids, tokens, readable.", "--json"),
) -> None:
    """Show the tokens and ids of texts.

    The special tokens that a model reads are shown too. The tokens of byte-level BPE are shown a second time
    as text, with ▁ for the blank before a word.

    Example: bertcli tokenizer encode --tokenizer runs/quickstart "It was dark."
    """
    from bertcli.tokenizer.tokenizer import Tokenizer

    if texts and input_ is not None:
        raise UserError("give texts or --input, not both")
    loaded = Tokenizer.load(tokenizer, lowercase=not cased)
    for text in texts or _lines(input_):
        ids = loaded.frame.row(loaded.encode(text)).ids
        tokens, readable = [[read(i) for i in ids] for read in (loaded.token, loaded.readable)]
        if json_:
            row = {"text": text, "ids": ids, "tokens": tokens, "readable": readable}
            print(json.dumps(row, ensure_ascii=False))
        else:
            lines = [tokens, *[readable] * (readable != tokens), map(str, ids)]
            print(*map(" ".join, lines), sep="\n")


def _lines(name: str | None) -> Iterator[str]:
    """The lines of a file, or of standard input, without their ends."""
    from bertcli.config.section import Decoding
    from bertcli.corpus.streams import read_lines
    from bertcli.inference.lines import STANDARD_INPUT, decoded_lines
    from bertcli.system.remote import given_path

    if name is not None:
        yield from (line.removesuffix("\r") for line in read_lines(given_path(name), Decoding()))
    else:
        yield from (line.removesuffix("\r") for line in decoded_lines(sys.stdin.buffer, STANDARD_INPUT))
