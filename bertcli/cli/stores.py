"""`bertcli clean`, `prepare`: a corpus -> a cleaned one, a token store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bertcli.cli.options import Config, Json, Set, argument, count, flag, option
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

if TYPE_CHECKING:
    from bertcli.config.run import PretrainRecipe
    from bertcli.corpus.engines import Placing
    from bertcli.corpus.token_store import OpenStore

EngineName = Literal["local", "slurm", "ray"]
Tasks = Annotated[
    int | None, count(..., "Parts that the files are divided into. Default: four for each worker.")
]
Workers = Annotated[
    int | None,
    count(..., "Parts in work at the same time. Default: one for each core of this machine."),
]


def clean(
    config: Config,
    out: Path = argument(..., "The folder to write: a new one.", "OUT"),
    set_: Set = None,
    dry_run: bool = flag(
        "Write no text: only say what each rule would take; with --engine slurm, only show the jobs.",
        "--dry-run",
    ),
    engine: EngineName = option("local", "The engine that does the work: this machine, Slurm or Ray."),
    tasks: Tasks = None,
    workers: Workers = None,
    json_: Json = False,
) -> None:
    """Write a corpus without noise and copies.

    It says what was left out, with examples. The rules are the keys of the section `clean`. The text is
    written to OUT/text as JSON lines, each document with the file it came from; OUT/report.html shows what
    each rule took. An interrupted work goes on, and the text does not depend on the engine, its tasks or
    workers. Needs the extra `scale`.

    Example: bertcli clean quickstart cleaned --dry-run
    """
    from bertcli.config import load, schema
    from bertcli.corpus.clean.run import account_lines, clean_corpus, next_step
    from bertcli.reports.page import page

    def made(account: dict[str, Any]) -> str:
        return page("What was cleaned", "cleaning.html.j2", {"account": account})

    run = load.load_config(schema.PretrainConfig, config, set_)
    placing = placing_of(
        engine,
        tasks,
        workers,
        command=["clean", config, out, *_given(set_, json_)],
        dry_run=dry_run,
    )
    with jobs_submitted(dry_run, json_):
        account = clean_corpus(
            run, out, placing, dry_run=dry_run and engine != "slurm", page=made, report=say
        )
        if json_:
            print(json.dumps(account, ensure_ascii=False))
            return
        for line in account_lines(account):
            say(line)
        if not dry_run:
            say(next_step(run.corpus, out))
            print(out)


def prepare(
    config: Config,
    set_: Set = None,
    overwrite: bool = flag("Replace a store that does not match the config.", "--overwrite"),
    verify: bool = flag("Compare all of the store with its hashes, however large it is.", "--verify"),
    engine: EngineName | None = option(
        None, "The engine that does the work: this machine, Slurm or Ray. Needs the extra `scale`."
    ),
    tasks: Tasks = None,
    workers: Workers = None,
    dry_run: bool = flag("With --engine slurm: only show the jobs.", "--dry-run"),
    json_: Json = False,
) -> None:
    """Build only the vocabulary and the token store of a run.

    It prints what is in them. A store that matches the config is opened. An interrupted build continues where
    it stopped. A store over 2 GB is checked by 1,000 blocks, which are compared with their hashes; --verify
    compares all blocks. The store does not depend on the engine, its tasks or workers.

    Example: bertcli prepare quickstart --set output_dir=runs/look
    """
    from bertcli.config import load, schema
    from bertcli.corpus import begin, build, engines, finish
    from bertcli.training import ranks, recipe, run_folder
    from bertcli.training.identity import pretraining_inputs

    placing = None
    if engine is not None:
        flags = [*["--overwrite"] * overwrite, *["--verify"] * verify]
        placing = placing_of(
            engine,
            tasks,
            workers,
            command=["prepare", config, *_given(set_, json_), *flags],
            dry_run=dry_run,
        )
    elif tasks or workers:
        raise UserError("--tasks and --workers are for an engine; give --engine as well")
    if dry_run and engine != "slurm":
        raise UserError("--dry-run shows the jobs of Slurm; give --engine slurm, or leave it out")

    def check() -> PretrainRecipe:
        checked = recipe.decide_recipe(load.load_config(schema.PretrainConfig, config, set_), say, overwrite)
        if overwrite:
            removed = [begin.place_of(checked), begin.partial_of(checked)]
            inputs, advice = pretraining_inputs(checked), "name another folder in corpus.store"
            run_folder.check_spared(removed, inputs, advice)
        return checked

    with ranks.joined(), jobs_submitted(dry_run, json_):
        checked = ranks.on_first(check)
        start = time.monotonic()
        if placing and ranks.num_ranks() > 1:
            raise UserError("--engine divides the work itself; run the command without torchrun")
        store = build.prepare_store(
            checked,
            say,
            overwrite,
            processes=0 if placing else None,
            team=engines.EngineTeam(placing, begin.partial_of(checked), say) if placing else ranks,
            verify=verify,
            check=lambda manifest: finish.check_known(checked, manifest.unk_rate),
        )
        for line in finish.misfits(checked, store.manifest):
            say(f"warning: {line}")
        summary = summarize(store, checked.corpus.source_names, time.monotonic() - start)
        print(json.dumps(summary, ensure_ascii=False) if json_ else _table(summary))


def _given(set_: list[str] | None, json_: bool) -> list[str]:
    """The options for a command that does the same."""
    return [*(f"--set={each}" for each in set_ or []), *["--json"] * json_]


def summarize(store: OpenStore, sources: Sequence[str], seconds: float) -> dict[str, Any]:
    """The object of `--json`: counts of both sides, sizes in bytes, rates as fractions, entropy in nats.

    `sources`: the names of the sources, which may have changed since the store was built.
    """
    manifest = store.manifest
    train, heldout, text = manifest.train, manifest.heldout, manifest.text
    return {
        "store": str(store.folder),
        "files": len(manifest.files),
        "sources": {
            name: {"tokens": source.train.tokens, "heldout_tokens": source.heldout.tokens}
            for name, source in zip(sources, manifest.sources, strict=True)
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


def placing_of(
    engine: EngineName,
    tasks: int | None,
    workers: int | None,
    command: Sequence[str | Path],
    dry_run: bool,
) -> Placing:
    """The engine that does the work of `command`, which is given without options of the engine.

    Raises `UserError` if `sbatch` is missing.
    """
    from bertcli.corpus.engines import Placing, check_sbatch

    if engine == "slurm" and not dry_run:
        check_sbatch()
    workers = workers or len(os.sched_getaffinity(0))
    tasks = tasks or 4 * workers
    last = [*map(str, command), "--engine", "local", "--tasks", str(tasks), "--workers", "1"]
    return Placing(tasks, workers, engine, last=last)


@contextmanager
def jobs_submitted(dry_run: bool, json_: bool) -> Iterator[None]:
    """End the block where its work is for jobs of Slurm; submit and print them, or only show them."""
    from bertcli.corpus.engines import Planned, shown, submit

    try:
        yield
    except Planned as work:
        if dry_run:
            print(*shown(work.scripts), sep="\n")
            return
        jobs = submit(work.scripts)
        say(
            "the last of these jobs puts the result together, and writes what this command would print to "
            f"slurm-{jobs[-1]}.out. The logs of the others are in {work.scripts[-1].parent}. After a job "
            "that failed, the same command goes on"
        )
        print(json.dumps({"jobs": jobs}) if json_ else "\n".join(jobs))
