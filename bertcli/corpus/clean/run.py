"""`bertcli clean`: a corpus -> a folder with what stays of it, and an account of what each rule took."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.config.corpus import CorpusConfig
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.begin import NOTE_PARTIAL
from bertcli.corpus.chunks import corpus_notes, find_corpus, stat_file
from bertcli.corpus.clean import stages
from bertcli.corpus.clean.folder import (
    CODES,
    PLAN,
    Plan,
    PlannedFile,
    column,
    columns_of,
    documents,
    plan_of,
)
from bertcli.corpus.clean.stages import EXAMPLES, STAGES, shown
from bertcli.corpus.engines import Placing, run_stages
from bertcli.corpus.files import in_utf8
from bertcli.corpus.matching import output_paths
from bertcli.corpus.pieces import LOGS
from bertcli.corpus.sample import text_bytes
from bertcli.folders.mark import NOTE, Note, write_note
from bertcli.folders.sealed import walk
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, has_file, is_lock, lock_file, plain_text
from bertcli.system.remote import InputPath
from bertcli.system.terminal import Report, counted

LOCK, ACCOUNT, PAGE = "cleaning.lock", "clean.json", "report.html"
_OWN = re.compile(
    rf"{re.escape(LOCK)}|{ACCOUNT}|{PAGE}|{re.escape(NOTE)}|{NOTE_PARTIAL.pattern}"
    r"|(plan|shared)\.json(\.\d+\.new)?|decided\.npz(\.\d+\.new)?|mended|judged|text(/[^/]+)?"
    r"|(mended|judged)/\d+(\.(bands|shingles|lines|examples))?\.(npy|json|jsonl\.zst)(\.\d+\.new)?"
    rf"|text/([^/]+/)?\d+\.jsonl\.zst(\.\d+\.new)?|{LOGS}(/.*)?"
)
"""Names in the folder of the work that the work gives."""
_CUT_SHARD = re.compile(r"text/([^/]+/)?\d+\.jsonl\.zst\.\d+\.new")
"""What a kill leaves of a shard."""
_TELLS_OF_INPUT = ("text_key", "encoding", "encodings", "join_lines")
"""Keys of a corpus that are not true of its cleaned text."""


def clean_corpus(
    config: PretrainConfig,
    out: Path,
    placing: Placing,
    dry_run: bool,
    page: Callable[[dict[str, Any]], str],
    report: Report,
) -> dict[str, Any]:
    """Clean the corpus of a config into the folder `out`; with `dry_run`, only the account is made.

    An interrupted work goes on, also with another number of tasks.

    Args:
        page: account -> the page that is written beside the text.

    Returns:
        the account, as it stands in `clean.json`: documents and bytes of mended text without shared lines, of
        all documents and of those that stay; by rule and source, what it took; examples of each rule.

    Raises:
        UserError: the corpus cannot be read; `out` exists; a package of the extra `scale` is missing.
    """
    if os.path.lexists(out):
        raise UserError(f"{out}: exists already; name a new folder for the cleaned text")
    partial = out.with_name(f"{out.name}.partial")
    files = find_corpus(config.corpus, output_paths(config) | {out.resolve(), partial.resolve()})
    for note in corpus_notes(files, config.corpus, report):
        report(note)
    planned = [
        PlannedFile(_full_name(file.path), file.source, record.size, mtime_ns=record.mtime_ns)
        for file, record in ((file, stat_file(file)) for file in files)
    ]
    plan = Plan(config.corpus, config.clean, planned)
    with disk_errors(f"{partial}: the cleaned text cannot be written"), _begun(partial, plan, report):
        size = text_bytes(files) / 1e6
        report(
            f"{counted(len(files), 'file')}, about {size:,.1f} MB of text; {partial} takes about "
            f"{1.5 * size:,.0f} MB meanwhile"
        )
        run_stages(STAGES[: len(STAGES) - dry_run], partial, placing, report=report)
        account = _account(partial)
        for line in _warnings(account, config.corpus):
            report(f"warning: {line}")
        if dry_run:
            report(f"nothing is written yet; the same command without --dry-run goes on from {partial}")
            return account
        if not account["kept_documents"]:
            raise UserError(
                f"{out}: not written, because no document stays; change the rules of the section clean:\n"
                + "\n".join(account_lines(account))
            )
        _publish(partial, out, account, page=page(account))
    return account


def _warnings(account: dict[str, Any], corpus: CorpusConfig) -> Iterator[str]:
    for name, own in zip(corpus.source_names, corpus.alone, strict=True):
        took = account["rules"]["language"][name]["documents"]
        if 2 * took > account["sources"][name]["documents"]:
            yield (
                f"most documents of {name} are likely not in its language, {own.language}: the rule language "
                f"took {took:,}; set corpus.language to that of the text, or clean.language to false"
            )


def _full_name(path: InputPath) -> str:
    """The path from the root; a link keeps its name, whose end says how the file is read."""
    return in_utf8(str(path.absolute() if isinstance(path, Path) else path))


@contextmanager
def _begun(partial: Path, plan: Plan, report: Report) -> Iterator[None]:
    """Prepare the folder of the work, which may be that of an interrupted one."""
    paths = walk(partial) if os.path.lexists(partial) else []
    others = [path for path in paths if path.is_symlink() or not _is_own(path, partial)]
    if partial.is_symlink() or (paths and not is_lock(partial / LOCK)):
        others.append(partial)
    if others:
        raise UserError(
            f"{others[0]}: bertcli did not make this, and `bertcli clean` needs {partial} for its work; move "
            "it elsewhere, or name another folder for the text"
        )
    partial.mkdir(parents=True, exist_ok=True)
    refusal, instead = f"{partial}: is being written by", "wait for it, or name another folder"
    with lock_file(partial / LOCK, refusal, instead):
        write_note(partial, Note("clean"))  # so that no folder of a corpus takes the work for text
        if has_file(partial / PLAN) and plain_text(partial / PLAN) == plan.text():
            report(f"going on with the interrupted work in {partial}")
        else:
            if has_file(partial / PLAN):
                report(f"{partial} was made of other files, with other rules or versions; it begins anew")
            _clear(partial, keep=(LOCK, NOTE))
            (partial / PLAN).write_text(plan.text(), encoding="utf-8")
        yield


def _is_own(path: Path, partial: Path) -> bool:
    return _OWN.fullmatch(str(path.relative_to(partial))) is not None


def _clear(partial: Path, keep: Sequence[str]) -> None:
    """Remove what the work wrote, and nothing else; `keep`: the files and folders that stay."""
    own = [
        path
        for path in walk(partial)
        if _is_own(path, partial) and path.relative_to(partial).parts[0] not in keep
    ]
    if PLAN not in keep:
        own.sort(key=lambda path: path.name != PLAN)  # after a kill, it must not vouch for what is gone
    for path in own:
        path.rmdir() if path.is_dir() else path.unlink()
    inner = {folder for path in own for folder in path.parents if partial in folder.parents}
    for folder in sorted(inner, reverse=True):
        with suppress(OSError):  # others put something there meanwhile
            folder.rmdir()


def _publish(partial: Path, out: Path, account: dict[str, Any], page: str) -> None:
    """Leave text and account in the folder, and give it its name."""
    _clear(partial, keep=(stages.TEXT, LOCK, NOTE))
    for path in walk(partial):
        if _CUT_SHARD.fullmatch(str(path.relative_to(partial))):
            path.unlink()
    text = json.dumps(account, ensure_ascii=False, indent=1)
    (partial / ACCOUNT).write_text(f"{text}\n", encoding="utf-8")
    (partial / PAGE).write_text(page, encoding="utf-8")
    names = {str(path.relative_to(partial)) for path in walk(partial) if _is_own(path, partial)} - {LOCK}
    write_note(partial, Note("clean", {name: [] for name in sorted(names)}))
    os.rename(partial, out)
    (out / LOCK).unlink()  # last: a folder that a kill leaves must still be known as ours


def _account(folder: Path) -> dict[str, Any]:
    plan, decided = plan_of(folder), np.load(folder / "decided.npz")
    columns, starts = columns_of(folder)
    rules, size = decided["rules"], column(columns, "bytes")
    of_lines = {"mend": column(columns, "mended"), "shared_lines": column(columns, "removed")}
    of_file = np.repeat([file.source for file in plan.files], np.diff(starts))
    names = plan.corpus.source_names
    took: dict[str, dict[str, Any]] = {rule: {} for rule in CODES}
    for rule, code in CODES.items():
        for source, name in enumerate(names):
            own = of_file == source
            if rule in of_lines:
                lines = of_lines[rule][own]
                took[rule][name] = {"documents": int((lines > 0).sum()), "lines": int(lines.sum())}
            else:
                is_out = own & (rules == code)
                took[rule][name] = {"documents": int(is_out.sum()), "bytes": int(size[is_out].sum())}
    stays = rules == 0
    return {
        "documents": len(rules),
        "bytes": int(size.sum()),
        "kept_documents": int(stays.sum()),
        "kept_bytes": int(size[stays].sum()),
        "sources": {
            name: {
                "documents": int((of_file == source).sum()),
                "kept_documents": int((stays & (of_file == source)).sum()),
                "kept_bytes": int(size[stays & (of_file == source)].sum()),
            }
            for source, name in enumerate(names)
        },
        "rules": took,
        "examples": _examples(folder, decided, starts),
    }


def _examples(folder: Path, decided: Any, starts: NDArray[np.int64]) -> dict[str, list[dict[str, Any]]]:
    """The first examples of each rule."""
    found: dict[str, list[dict[str, Any]]] = {rule: [] for rule in CODES}
    for file in range(len(starts) - 1):
        mended, judged = (
            json.loads((folder / stage / f"{file:05}.examples.json").read_text(encoding="utf-8"))
            for stage in ("mended", "judged")
        )
        for rule, some in [("mend", mended), *judged.items()]:
            found[rule] += some[: EXAMPLES - len(found[rule])]
    for rule in ("copies", "near_copies"):
        for document in np.flatnonzero(decided["rules"] == CODES[rule])[:EXAMPLES].tolist():
            kept, similar = int(decided["kept"][document]), float(decided["similar"][document])
            one, other = (_example(folder, starts, each) for each in (document, kept))
            found[rule].append({**one, "as": other, "similarity": round(similar, 3)})
    return found


def _example(folder: Path, starts: NDArray[np.int64], document: int) -> dict[str, Any]:
    file = int(np.searchsorted(starts, document, side="right")) - 1
    own = document - int(starts[file])
    read, lines = next(itertools.islice(documents(folder, file), own, None))
    return {"file": plan_of(folder).files[file].path, "document": read.number, "text": shown(lines)}


def account_lines(account: dict[str, Any]) -> Iterator[str]:
    """The account for a terminal."""
    kept, before = account["kept_documents"], account["documents"]
    yield (
        f"{kept:,} of {before:,} documents stay, {account['kept_bytes'] / 1e6:,.1f} of "
        f"{account['bytes'] / 1e6:,.1f} MB"
    )
    for rule, sources in account["rules"].items():
        total: Counter[str] = Counter()
        for counts in sources.values():
            total.update(counts)
        if not total["documents"]:
            continue
        what = f"{counted(total['lines'], 'line')} in " if "lines" in total else ""
        by = {name: counts["documents"] for name, counts in sources.items() if counts["documents"]}
        each = "" if len(sources) == 1 else f" ({', '.join(f'{name} {n:,}' for name, n in by.items())})"
        yield f"  {rule:<14}{what}{counted(total['documents'], 'document')}{each}"


def next_step(corpus: CorpusConfig, out: Path) -> str:
    """How a config reads the cleaned text in `out`, for a terminal."""
    keys = [
        key
        for key in _TELLS_OF_INPUT
        if any(getattr(each, key) != CorpusConfig.model_fields[key].default for each in corpus.alone)
    ]
    files = out / stages.TEXT / ("NAME" if corpus.sources else "")
    where = f"files: {files}{' for each source' if corpus.sources else ''}"
    without = f", and without {', '.join(keys)}" if keys else ""
    anew = any(each.format == "sentences" for each in corpus.alone)
    divided = "; its lines, which were a sentence each, may then be divided further" if anew else ""
    return f"a config reads this text with {where}, format: jsonl{without}{divided}"
