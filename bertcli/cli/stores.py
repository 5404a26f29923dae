"""`bertcli clean`, `prepare`, `tokenizer`: a corpus -> a cleaned one, a vocabulary, a token store."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bertcli.cli.options import Config, Json, Set, argument, count, flag, group, option
from bertcli.config.limits import MOST_TOKENS
from bertcli.families.family import FamilyName, TokenizerKind
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

if TYPE_CHECKING:
    from bertcli.config.run import PretrainRecipe
    from bertcli.corpus.token_store import OpenStore


def clean(
    config: Config,
    out: Path = argument(..., "The folder to write: a new one.", "OUT"),
    set_: Set = None,
    dry_run: bool = flag("Write no text: only say what each rule would take.", "--dry-run"),
    tasks: int | None = count(None, "Parts that the files are divided into. Default: four for each worker."),
    workers: int | None = count(None, "Parts in work at the same time. Default: one for each core."),
    json_: Json = False,
) -> None:
    """Write the corpus without noise and copies, and say what was left out, with examples.

    The rules are the keys of the section `clean`. The text is written to OUT/text as JSON lines, each
    document with the file it came from; OUT/report.html shows what each rule took. An interrupted work goes
    on, and the text does not depend on the number of tasks or workers. Needs the extra `scale`.

    Example: bertcli clean configs/novels.yaml cleaned --dry-run
    """
    import os

    from bertcli.config import load, schema
    from bertcli.corpus.clean.run import account_lines, clean_corpus
    from bertcli.corpus.engines import Placing
    from bertcli.reports.page import page

    def made(account: dict[str, Any]) -> str:
        return page("What was cleaned", "cleaning.html.j2", {"account": account})

    run = load.load_config(schema.PretrainConfig, config, set_)
    workers = workers or len(os.sched_getaffinity(0))
    placing = Placing(tasks or 4 * workers, workers)
    account = clean_corpus(run, out, placing, dry_run=dry_run, page=made, report=say)
    if json_:
        print(json.dumps(account, ensure_ascii=False))
        return
    for line in account_lines(account):
        say(line)
    if not dry_run:
        print(out)


def prepare(
    config: Config,
    set_: Set = None,
    overwrite: bool = flag("Replace a store that does not match the config.", "--overwrite"),
    verify: bool = flag("Compare all of the store with its hashes, however large it is.", "--verify"),
    json_: Json = False,
) -> None:
    """Build only the vocabulary and the token store, and print what is in them.

    A store that matches the config is opened. An interrupted build continues where it stopped. A store over 2
    GB is checked by 1,000 blocks, which are compared with their hashes; --verify compares all blocks.

    Example: bertcli prepare configs/quickstart.yaml --set output_dir=runs/look
    """
    from bertcli.config import load, schema
    from bertcli.corpus import begin, build, finish
    from bertcli.training import ranks, recipe, run_folder
    from bertcli.training.identity import pretraining_inputs

    def check() -> PretrainRecipe:
        checked = recipe.decide_recipe(load.load_config(schema.PretrainConfig, config, set_), say, overwrite)
        if overwrite:
            removed = [begin.place_of(checked), begin.partial_of(checked)]
            inputs, advice = pretraining_inputs(checked), "name another folder in corpus.store"
            run_folder.check_spared(removed, inputs, advice)
        return checked

    with ranks.joined():
        checked = ranks.on_first(check)
        start = time.monotonic()
        store = build.prepare_store(
            checked,
            say,
            overwrite,
            team=ranks,
            verify=verify,
            check=lambda manifest: finish.check_known(checked, manifest.unk_rate),
        )
        for line in finish.misfits(checked, store.manifest):
            say(f"warning: {line}")
        summary = summarize(store, time.monotonic() - start)
        print(json.dumps(summary, ensure_ascii=False) if json_ else _table(summary))


def summarize(store: OpenStore, seconds: float) -> dict[str, Any]:
    """The object of `--json`: counts of both sides, sizes in bytes, rates as fractions, entropy in nats."""
    manifest = store.manifest
    train, heldout, text = manifest.train, manifest.heldout, manifest.text
    return {
        "store": str(store.folder),
        "files": len(manifest.files),
        "sources": {
            source.name: {"tokens": source.train.tokens, "heldout_tokens": source.heldout.tokens}
            for source in manifest.sources
        },
        "bytes": text.bytes,
        "words": text.words,
        "documents": train.documents,
        "one_sentence_documents": train.one_sentence_documents,
        "sentences": train.sentences,
        "tokens": train.tokens,
        "heldout_documents": heldout.documents,
        "heldout_sentences": heldout.sentences,
        "heldout_tokens": heldout.tokens,
        "dropped_documents": manifest.dropped_documents,
        "dropped_sentences": manifest.dropped_sentences,
        "vocab_size": manifest.vocab_size,
        "unk_rate": manifest.unk_rate,
        "tokens_per_word": manifest.tokens_per_word,
        "unigram_entropy": manifest.unigram_entropy,
        "store_bytes": sum(manifest.arrays.values()),
        "seconds": seconds,
        "mb_per_second": text.bytes / 1e6 / seconds,
    }


def _table(s: dict[str, Any]) -> str:
    rows = {
        "text": f"{s['files']:,} files, {s['bytes'] / 1e6:,.1f} MB, {s['words']:,} words",
        "to train on": f"{s['documents']:,} documents, {s['sentences']:,} sentences, {s['tokens']:,} tokens",
        "held out": f"{s['heldout_documents']:,} documents, {s['heldout_sentences']:,} sentences, "
        f"{s['heldout_tokens']:,} tokens",
        "one sentence": f"{s['one_sentence_documents']:,} documents, which give no true pair",
        "dropped": f"{s['dropped_documents']:,} documents, {s['dropped_sentences']:,} sentences (no token)",
        "vocabulary": f"{s['vocab_size']:,} entries, {s['tokens_per_word']:.3f} tokens a word, "
        f"{s['unk_rate']:.4%} unknown",
        "entropy": f"{s['unigram_entropy']:.3f} nats a token (unigram)",
        "store": f"{s['store']}, {s['store_bytes'] / 1e6:,.1f} MB",
        "time": f"{s['seconds']:.1f} s, {s['mb_per_second']:.1f} MB/s",
    }
    lines = [f"{name:<13}{value}" for name, value in rows.items()]
    if len(s["sources"]) > 1:
        lines[1:1] = [f"{name:<13}{of['tokens']:,} tokens to train on" for name, of in s["sources"].items()]
    return "\n".join(lines)


tokenizer = group("Train a vocabulary, or use one.")


@tokenizer.command()
def train(
    files: list[str] = argument(..., "Files, folders, globs, or a bundled sample: classics."),
    output: Path = option(..., "The folder to write; it must not hold a tokenizer.", "--output"),
    vocab_size: int = option(30522, "Number of entries, special tokens included.", min=6, max=MOST_TOKENS),
    family: FamilyName = option("bert", "Family whose special tokens are used (model.family)."),
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
    """Train a vocabulary; print its folder.

    A text of more than 256 MB is read as a uniform sample of about that size. The same text gives the same
    vocabulary, bit for bit.

    Example: bertcli tokenizer train classics --output runs/vocabulary --vocab-size 8192
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


@tokenizer.command()
def encode(
    tokenizer: Path = option(
        ..., "A vocab.txt, a tokenizer.json, or a folder with one, such as a run or a store.", "--tokenizer"
    ),
    texts: list[str] | None = argument(None, "Texts; default: lines of standard input.", "[TEXT]..."),
    input_: Path | None = option(None, "A file with a text a line.", "--input"),
    cased: bool = flag("Keep upper case and accents, for a bare vocab.txt.", "--cased"),
    json_: bool = flag("Print one JSON object a text: text, ids, tokens, readable.", "--json"),
) -> None:
    """Show the tokens and ids of texts, with the special tokens that a model reads.

    The tokens of byte-level BPE are shown a second time as text, with ▁ for the blank before a word.

    Example: bertcli tokenizer encode --tokenizer runs/vocabulary "It was a dark night."
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


def _lines(path: Path | None) -> Iterator[str]:
    """The lines of a file, or of standard input, without their ends."""
    from bertcli.config.section import Decoding
    from bertcli.corpus.streams import read_lines
    from bertcli.inference.lines import STANDARD_INPUT, decoded_lines

    if path is not None:
        yield from (line.removesuffix("\r") for line in read_lines(path, Decoding()))
    else:
        yield from (line.removesuffix("\r") for line in decoded_lines(sys.stdin.buffer, STANDARD_INPUT))
