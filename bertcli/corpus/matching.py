"""The tokenizer of a store, and the comparison of a store with a config: options, files, sizes, times."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from bertcli.config.corpus import CorpusConfig
from bertcli.config.run import TokenizerRecipe
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.chunks import progress_display, stat_file
from bertcli.corpus.files import CorpusFile, corpus_files
from bertcli.corpus.manifest import FileRecord, Manifest
from bertcli.corpus.sample import SAMPLE_BYTES, sample_paragraphs, sample_rates, sample_share
from bertcli.families.family import TokenizerKind
from bertcli.families.registry import UNNAMED
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.folders.run_layout import FILES, FOLDERS, RunLayout
from bertcli.system.errors import UserError
from bertcli.system.files import file_hash
from bertcli.system.terminal import Report
from bertcli.tokenizer.folder import tokenizer_files
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import Training, train_tokenizer

KINDS: dict[TokenizerKind, str] = {
    "wordpiece": "WordPiece",
    "byte-bpe": "byte-level BPE",
    "unigram": "Unigram",
}
"""The value of `tokenizer.kind` -> its name in messages."""


def given_tokenizer(config: PretrainConfig) -> str | None:
    """The path of the tokenizer that the config names; None if one is to be trained on the corpus."""
    teacher = None if config.distillation is None else config.distillation.teacher
    return config.model.init_from or config.tokenizer.path or teacher


def load_given_tokenizer(config: PretrainConfig) -> Tokenizer | None:
    """The tokenizer that the config names, whose `lowercase` is decided; None if one is to be trained."""
    given, options = given_tokenizer(config), config.tokenizer
    if given is None:
        return None
    path = Path(given).expanduser()
    stats = [file.stat() for file in tokenizer_files(path)]
    state = tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)
    return _read_once(path, options.lowercase is True, options.strips_accents(), state=state)


@lru_cache(maxsize=1)
def _read_once(path: Path, lowercase: bool, strip_accents: bool | None, state: tuple[Any, ...]) -> Tokenizer:
    """The tokenizer at `path`, read once for all stages of a run; `state` changes when its files change."""
    del state
    return Tokenizer.load(path, lowercase, strip_accents)


def train_on_corpus(
    files: Sequence[CorpusFile],
    corpus: CorpusConfig,
    options: TokenizerRecipe,
    report: Report,
    model_type: str = UNNAMED,
    spool_folder: Path | None = None,
) -> Tokenizer:
    """Train a vocabulary on the corpus, or on an even sample of a large one.

    `report` takes lines for the user. The special tokens are those of the family `model_type`.
    """
    assert options.kind != "auto"  # it stays `auto` only where the vocabulary is given
    size, share = options.vocab_size, sample_share(files)
    rates = sample_rates(files, corpus)
    what = "all of the text"
    if len(set(rates)) > 1:
        what = "text with the shares of the sources at the start"
    elif share < 1.0:
        what = f"an even sample of the text, {share:.2%}, about {SAMPLE_BYTES // 10**6} MB"
    report(f"training a {KINDS[options.kind]} vocabulary of {size:,} entries on {what}")
    with progress_display("reading", files, report) as advance:
        tokenizer = train_tokenizer(
            sample_paragraphs(files, corpus, rates, progress=advance),
            size,
            options.lowercase,
            strip_accents=options.strips_accents(),
            kind=options.kind,
            facts=TOKENIZERS[model_type],
            training=Training(corpus.main_language, spool_folder, report),
        )
    if tokenizer.vocab_size < size:
        report(f"note: the text is too short for {size:,} entries: it gives {tokenizer.vocab_size:,}")
    return tokenizer


def store_folder(config: PretrainConfig) -> Path:
    """The folder of the config's store: `corpus.store`, or `store` in `output_dir`."""
    return Path(config.corpus.store or RunLayout(Path(config.output_dir)).store).expanduser()


def output_paths(config: PretrainConfig) -> set[Path]:
    """The real paths that a run of `config` writes: its folder, files and folders in it, and its store."""
    root, store = Path(config.output_dir).expanduser(), store_folder(config)
    paths = [root, *(root / name for name in (*FILES, *FOLDERS)), store]
    return {path.resolve() for path in paths} | {store.resolve().with_name(f"{store.resolve().name}.partial")}


def store_options(config: PretrainConfig) -> dict[str, Any]:
    """The dotted name -> the value of every key that a store depends on."""
    # Weights and names decide nothing but a run's rows, and how they are called.
    unread = {"store": True, "general": True, "temperature": True, "sources": {"__all__": {"name", "weight"}}}
    corpus = config.corpus.model_dump(mode="json", exclude=unread)
    options = {f"corpus.{key}": value for key, value in corpus.items()}
    tokenizer = config.tokenizer
    if config.model.init_from is not None:
        return options | {"model.init_from": config.model.init_from}
    options["tokenizer.path"] = tokenizer.path
    if tokenizer.path is None:
        options["tokenizer.vocab_size"] = tokenizer.vocab_size
        options["tokenizer.kind"] = tokenizer.kind
        options["model.family"] = config.model.family or UNNAMED
    return options | {
        "tokenizer.lowercase": tokenizer.lowercase,
        "tokenizer.strip_accents": tokenizer.strips_accents(),
    }


def check_matches(folder: Path, manifest: Manifest, config: PretrainConfig) -> None:
    """Raise a `UserError` that names the differences between a store and the config.

    Files are compared by size and time; if only the time of a file differs, it is read and hashed. A new file
    is a difference, a missing one is not.
    """
    problems = _different_options(manifest.options, store_options(config))
    if not problems:
        present = corpus_files(config.corpus, output_paths(config), missing_ok=True)
        problems += different_files(manifest.files, present)
        path = given_tokenizer(config)
        exists = path is not None and Path(path).expanduser().exists()
        tokenizer = load_given_tokenizer(config) if exists else None
        if tokenizer is not None and tokenizer.hash != manifest.tokenizer_hash:
            problems.append(f"{path}: the tokenizer has changed")
    if problems:
        shown = [*problems[:10], f"and {len(problems) - 10} more"] if len(problems) > 10 else problems
        lines = "".join(f"\n  {each}" for each in shown)
        raise UserError(
            f"{folder}: the store was built from something else:{lines}\n  Build the store again with "
            "bertcli prepare CONFIG --overwrite, or name another folder in corpus.store"
        )


def _different_options(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    absent = "not given"
    return [
        f"{key}: {before.get(key, absent)!r} in the store, {now.get(key, absent)!r} in the config"
        for key in before | now
        if before.get(key, absent) != now.get(key, absent)
    ]


def different_files(records: Sequence[FileRecord], present: Sequence[CorpusFile]) -> Iterator[str]:
    """One line for each file that differs from its record, or has no record."""
    known = {record.name: record for record in records}
    for file in present:
        record, now = known.get(file.name), stat_file(file)
        if record is None:
            yield f"{file.path}: this file is new"
        elif now.size != record.size:
            yield f"{file.path}: the file changed, from {record.size:,} bytes to {now.size:,}"
        elif now.mtime_ns != record.mtime_ns and file_hash(file.path) != record.sha256:
            yield f"{file.path}: the file changed; its size is the same"
