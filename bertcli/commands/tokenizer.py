"""`bertcli tokenizer train|encode`: train or use a vocabulary alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from bertcli.config.section import MOST_TOKENS
from bertcli.families.fresh import FamilyName, TokenizerKind
from bertcli.terminal import say

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Train a vocabulary, or use one.",
)


@app.command()
def train(
    files: Annotated[list[str], typer.Argument(help="Files, folders, globs, or a bundled sample: classics.")],
    output: Annotated[
        Path, typer.Option("--output", help="The folder to write; it must not hold a tokenizer.")
    ],
    vocab_size: Annotated[
        int, typer.Option("--vocab-size", min=6, max=MOST_TOKENS, help="Entries, special tokens included.")
    ] = 30522,
    family: Annotated[FamilyName, typer.Option(help="Whose special tokens; as model.family.")] = "bert",
    kind: Annotated[
        TokenizerKind | None, typer.Option(help="As tokenizer.kind; default: the family's.")
    ] = None,
    cased: Annotated[
        bool | None, typer.Option("--cased/--uncased", help="Keep upper case; default: as the family.")
    ] = None,
    strip_accents: Annotated[
        bool,
        typer.Option("--strip-accents", help="Remove accents (é: e), as BERT-uncased does."),
    ] = False,
    format_: Annotated[
        Literal["text", "sentences", "jsonl", "parquet"],
        typer.Option("--format", help="As corpus.format in a config."),
    ] = "text",
    text_key: Annotated[str, typer.Option("--text-key", help="The key or column of the text.")] = "text",
    encoding: Annotated[str, typer.Option("--encoding", help="Of the files.")] = "utf-8",
    language: Annotated[
        str,
        typer.Option(
            metavar="CODE", help="As corpus.language: tr, az and lt lose their case by rules of their own."
        ),
    ] = "en",
) -> None:
    """Train a vocabulary; print its folder.

    From more than 256 MB of text a uniform sample of about that size is read. The same text gives the same
    vocabulary, bit for bit.

    Example: bertcli tokenizer train classics --output runs/vocabulary --vocab-size 8192
    """
    from bertcli.config.load import check_config
    from bertcli.config.schema import CorpusConfig, TokenizerConfig
    from bertcli.errors import UserError
    from bertcli.families.registry import NEW
    from bertcli.store.corpus_files import encoding_notes
    from bertcli.store.vocabulary import train_on_corpus
    from bertcli.text.sources import find_sources

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
    corpus = check_config(CorpusConfig, value, "the options")
    sources, fresh = find_sources(files), NEW[family]
    for note in encoding_notes(sources, corpus):
        say(note)
    options = TokenizerConfig(
        vocab_size=vocab_size,
        kind=kind or fresh.tokenizer,
        lowercase=fresh.lowercase if cased is None else not cased,
        strip_accents=strip_accents,
    )
    tokenizer = train_on_corpus(sources, corpus, options, report=say, model_type=fresh.family.model_type)
    try:
        tokenizer.save(output)
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written: {error.strerror}") from None
    print(output)


@app.command()
def encode(
    tokenizer: Annotated[
        Path,
        typer.Option(
            "--tokenizer",
            help="A vocab.txt, a tokenizer.json, or a folder with one, such as a run or a store.",
        ),
    ],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Default: lines of stdin.")
    ] = None,
    input_: Annotated[Path | None, typer.Option("--input", help="A text a line.")] = None,
    cased: Annotated[
        bool, typer.Option("--cased", help="For a bare vocab.txt: keep upper case and accents.")
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="One JSON object a text: text, ids, tokens, readable.")
    ] = False,
) -> None:
    """Show the tokens and ids of texts, with the special tokens that a model reads.

    The tokens of byte-level BPE are shown a second time as text, with ▁ for the blank before a word.

    Example: bertcli tokenizer encode --tokenizer runs/vocabulary "It was a dark night."
    """
    from bertcli.errors import UserError
    from bertcli.text.tokenizer import Tokenizer

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


def _lines(path: Path | None) -> Iterator[str]:
    """The lines of a file, or of standard input, without their ends."""
    from bertcli.config.decoding import Decoding
    from bertcli.inference.lines import STANDARD_INPUT, decoded_lines
    from bertcli.text.streams import read_lines

    if path is not None:
        yield from (line.removesuffix("\r") for line in read_lines(path, Decoding()))
    else:
        yield from (line.removesuffix("\r") for line in decoded_lines(sys.stdin.buffer, STANDARD_INPUT))
