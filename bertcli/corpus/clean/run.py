"""`bertcli clean`: a corpus -> a folder with what stays of it, and an account of what each rule took."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.config.schema import PretrainConfig
from bertcli.corpus.chunks import corpus_notes, find_corpus
from bertcli.corpus.clean import stages
from bertcli.corpus.clean.stages import COLUMNS, RULES, STAGES, Plan
from bertcli.corpus.engines import Placing, run_stages
from bertcli.corpus.matching import output_paths
from bertcli.folders.mark import Note, write_note
from bertcli.folders.sealed import walk
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, lock_file
from bertcli.system.terminal import Report

KEY, LOCK = "cleaning.json", "cleaning.lock"
TEXT = "text"
ACCOUNT, PAGE = "clean.json", "report.html"
_EXAMPLES = 5
_SHOWN = 200
"""The most characters of an example."""


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
        the account, as it stands in `clean.json`: documents and bytes before and after; by rule and source,
        what it took; examples of each rule.

    Raises:
        UserError: the corpus cannot be read; `out` exists; a package of the extra `scale` is missing.
    """
    partial = out.with_name(f"{out.name}.partial")
    if os.path.lexists(out):
        raise UserError(f"{out}: exists already; name a new folder for the cleaned text")
    files = find_corpus(config.corpus, output_paths(config) | {out.resolve(), partial.resolve()})
    for note in corpus_notes(files, config.corpus, report):
        report(note)
    size = sum(file.size for file in files)
    plan = Plan(config.corpus, config.clean, [(str(file.path.resolve()), file.source) for file in files])
    with disk_errors(f"{partial}: the cleaned text cannot be written"), _begun(partial, plan, report):
        report(f"{len(files):,} files, {size / 1e6:,.1f} MB; {partial} takes about as much again meanwhile")
        run_stages(STAGES[: len(STAGES) - dry_run], partial, placing, report=report)
        account = _account(partial)
        if dry_run:
            report(f"nothing is written yet; the same command without --dry-run goes on from {partial}")
            return account
        _publish(partial, out, account, page=page(account))
    return account


@contextmanager
def _begun(partial: Path, plan: Plan, report: Report) -> Iterator[None]:
    """Prepare the folder of the work, which may be that of an interrupted one."""
    key = json.dumps(
        {
            "corpus": plan.corpus.model_dump(mode="json"),
            "clean": plan.clean.model_dump(mode="json"),
            "files": [[path, os.stat(path).st_size, os.stat(path).st_mtime_ns] for path, _ in plan.files],
        }
    )
    if partial.exists() and any(partial.iterdir()) and not (partial / LOCK).exists():
        raise UserError(f"{partial}: bertcli did not make this folder; move it, or name another for the text")
    partial.mkdir(parents=True, exist_ok=True)
    refusal, instead = f"{partial}: is being written by", "wait for it, or name another folder"
    with lock_file(partial / LOCK, refusal, instead):
        if (partial / KEY).exists() and (partial / KEY).read_text(encoding="utf-8") == key:
            report(f"going on with the interrupted work in {partial}")
        else:
            for path in partial.iterdir():
                if path.name != LOCK:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            plan.save(partial)
            (partial / KEY).write_text(key, encoding="utf-8")
        yield


def _publish(partial: Path, out: Path, account: dict[str, Any], page: str) -> None:
    """Leave text and account in the folder, and give it its name."""
    for path in partial.iterdir():
        if path.name not in (TEXT, LOCK):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    text = json.dumps(account, ensure_ascii=False, indent=1)
    (partial / ACCOUNT).write_text(f"{text}\n", encoding="utf-8")
    (partial / PAGE).write_text(page, encoding="utf-8")
    (partial / LOCK).unlink()
    names = [str(path.relative_to(partial)) for path in walk(partial)]
    write_note(partial, Note("clean", {name: [] for name in sorted(names)}))
    os.rename(partial, out)


def _account(folder: Path) -> dict[str, Any]:
    plan, decided = stages.plan_of(folder), np.load(folder / "decided.npz")
    rules, starts = decided["rules"], decided["starts"]
    columns = np.concatenate(
        [np.load(folder / "judged" / f"{file:05}.npz")["columns"] for file in range(len(plan.files))]
    )
    size, removed, mended = (columns[:, COLUMNS.index(name)] for name in ("bytes", "removed", "mended"))
    of_file = np.repeat([source for _, source in plan.files], np.diff(starts))
    names = plan.corpus.source_names
    took: dict[str, dict[str, Any]] = {}
    for number, rule in enumerate(RULES, start=1):
        for source, name in enumerate(names):
            own = of_file == source
            if rule in ("mend", "shared_lines"):
                lines = np.where(own, mended if rule == "mend" else removed, 0)
                found = {"documents": int((lines > 0).sum()), "lines": int(lines.sum())}
            else:
                is_out = own & (rules == number)
                found = {"documents": int(is_out.sum()), "bytes": int(size[is_out].sum())}
            took.setdefault(rule, {})[name] = found
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
        "examples": _examples(folder, decided),
    }


def _examples(folder: Path, decided: Any) -> dict[str, list[dict[str, Any]]]:
    """The first examples of each rule."""
    plan = stages.plan_of(folder)
    found: dict[str, list[dict[str, Any]]] = {rule: [] for rule in RULES}
    for file in range(len(plan.files)):
        mended = json.loads((folder / "mended" / f"{file:05}.examples.json").read_text(encoding="utf-8"))
        judged = json.loads((folder / "judged" / f"{file:05}.examples.json").read_text(encoding="utf-8"))
        for rule, some in [("mend", mended), *judged.items()]:
            found[rule] += some[: _EXAMPLES - len(found[rule])]
    for rule in ("copies", "near_copies"):
        for document in np.flatnonzero(decided["rules"] == RULES.index(rule) + 1)[:_EXAMPLES].tolist():
            kept, similar = int(decided["kept"][document]), float(decided["similar"][document])
            one, other = (_shown(folder, decided["starts"], each) for each in (document, kept))
            found[rule].append({**one, "as": other, "similarity": round(similar, 3)})
    return found


def _shown(folder: Path, starts: Any, document: int) -> dict[str, Any]:
    file = int(np.searchsorted(starts, document, side="right")) - 1
    own = document - int(starts[file])
    for number, (read, lines) in enumerate(stages.documents(folder, file)):
        if number == own:
            path = stages.plan_of(folder).files[file][0]
            return {"file": path, "document": read.number, "text": " / ".join(lines)[:_SHOWN]}
    raise AssertionError("unreachable: the document was judged")


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
        what = f"{total['lines']:,} lines in " if "lines" in total else ""
        by = {name: counts["documents"] for name, counts in sources.items() if counts["documents"]}
        each = "" if len(sources) == 1 else f" ({', '.join(f'{name} {n:,}' for name, n in by.items())})"
        yield f"  {rule:<14}{what}{total['documents']:,} documents{each}"
