"""`bertcli check-data`, `show-batch`: the data that a run will read, and what to mend in it."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from bertcli.cli.options import AnyConfig, Config, Json, JsonLines, Set, count, flag
from bertcli.system.errors import Finding, UserError
from bertcli.system.terminal import counted, raw_stream, say

if TYPE_CHECKING:
    from bertcli.config.finetune import FinetuneConfig
    from bertcli.config.schema import PretrainConfig


def check_data(
    config: AnyConfig,
    set_: Set = None,
    tokens: bool = flag(
        "Tokenize all of a corpus, not a sample; where there is no vocabulary, one is trained and "
        "kept for the run.",
        "--tokens",
    ),
    json_: Json = False,
) -> None:
    """Show what to mend in the data of a config, worst first.

    The data is read once. A corpus: counts of documents, sentences, words, tokens, pairs and steps per epoch;
    repeated documents and lines, damaged characters, lines in other languages. Labeled files: rows, labels,
    lengths, duplicates. Nothing is written, except by --tokens. Exit code 1: the run would fail on this data.

    Example: bertcli check-data quickstart
    """
    from bertcli.advice.check.findings import findings_json, findings_text
    from bertcli.config import load, schema

    start = time.monotonic()
    checked = load.load_either_config(config, set_)
    is_corpus = isinstance(checked, schema.PretrainConfig)
    figures, findings = _check(checked, tokens)
    figures["seconds"] = time.monotonic() - start
    fails = any(finding.fails for finding in findings)
    if json_:
        kind = "pretraining" if is_corpus else "fine-tuning"
        values = {"config": str(config), "kind": kind, **figures, **findings_json(findings)}
        print(json.dumps(values, ensure_ascii=False))
    else:
        rows = _corpus_rows(figures, fails) if is_corpus else _labeled_rows(figures)
        print("\n".join([*rows, "", findings_text(findings)]))
    if fails:
        raise typer.Exit(1)


def _check(config: PretrainConfig | FinetuneConfig, tokens: bool) -> tuple[dict[str, Any], list[Finding]]:
    from bertcli.advice.check.pretraining import check_pretraining
    from bertcli.config.schema import PretrainConfig
    from bertcli.training.recipe import decide_recipe

    if isinstance(config, PretrainConfig):
        return check_pretraining(decide_recipe(config, say), tokens, say)
    if tokens:
        raise UserError("--tokens: only for a corpus; all rows of labeled files are tokenized anyway")
    from bertcli.advice.check.finetuning import LabeledCheck  # only here, since it imports torch

    check = LabeledCheck(config)
    return check.figures | {"notes": check.notes}, check.findings


def _labeled_rows(figures: dict[str, Any]) -> list[str]:
    from bertcli.tasks.data_report import overview

    if "rows" not in figures:
        return [*figures["notes"], "the rows could not be counted"]
    return [*figures["notes"], *overview(figures), f"epoch: {figures['steps_per_epoch']:,} steps"]


def _corpus_rows(f: dict[str, Any], fails: bool) -> list[str]:
    unit = "parts of documents" if f["cut_documents"] else "documents"

    def sized(documents: int, sentences: int, tokens: int | None) -> str:
        about = "about " if f["tokens_from"] == "sample" else ""
        of_tokens = "" if tokens is None else f", {about}{tokens:,} tokens"
        return f"{documents:,} {unit}, {sentences:,} sentences{of_tokens}"

    def estimated(name: str) -> str:
        error = f[f"{name}_error"]
        return f"about {f[name]:,} (± {2 * error:,.0f})" if error else f"{f[name]:,}"

    others = sum(f["other_language_lines"].values())
    documents = f["cut_documents"] or f["documents"] + f["heldout_documents"]
    words = "" if _has_few_blanks(f) else f", {f['words']:,} words"
    left_out = ""
    if f["dropped_documents"] or f["dropped_sentences"]:
        dropped = counted(f["dropped_documents"], "document"), counted(f["dropped_sentences"], "sentence")
        left_out = f"{' and '.join(dropped)} without a token"
    rows = {
        "text": f"{counted(f['files'], 'file')}, {f['bytes'] / 1e6:,.1f} MB, "
        f"{counted(documents, 'document')}, {counted(f['lines'], 'line')}{words}",
        "to train on": sized(f["documents"], f["sentences"], f.get("tokens")),
        "held out": sized(f["heldout_documents"], f["heldout_sentences"], f.get("heldout_tokens")),
        "left out": left_out,
        "one sentence": f"{f['one_sentence_documents']:,} {unit}, which give no true pair",
        "pairs": f"{f['pairs']:,} places give a true pair",
        **_token_rows(f, fails),
        "repeated": f"{estimated('repeated_documents')} documents, {estimated('repeated_lines')} lines "
        f"({f['repeated_lines_share']:.1%} of the text)",
        "damaged": f"{f['mojibake_lines']:,} lines with mojibake, {f['control_character_lines']:,} with "
        f"control characters, {f['long_lines']:,} too long",
        "language": f"{f['other_language_share']:.1%} of the text is likely in another: {others:,} of "
        f"{counted(f['identified_lines'], 'sampled line')}",
        "time": f"{f['seconds']:.1f} s, {f['bytes'] / 1e6 / f['seconds']:.1f} MB/s",
    }
    return [f"{name:<13}{value}" for name, value in rows.items() if value]


def _has_few_blanks(f: dict[str, Any]) -> bool:
    """True if the script has no blanks between words, so that "words" are sentences."""
    from bertcli.corpus.sample import FEW_BLANKS

    return f.get("blanks_per_character", 1.0) < FEW_BLANKS


def _token_rows(f: dict[str, Any], fails: bool) -> dict[str, str]:
    if f["tokens_from"] is None:
        trains = "there is no vocabulary yet; --tokens trains it first, as prepare does"
        return {"tokens": f"not counted: {'mend first what fails' if fails else trains}"}
    if _has_few_blanks(f):
        pieces = f"{f['tokens_per_character']:.3f} tokens a character"
    else:
        pieces = f"{f['tokens_per_word']:.3f} tokens a word"
    source = {"all": "", "store": ", from the store", "sample": f", a sample: ± {2 * f['tokens_error']:.2%}"}
    return {
        "epoch": f"{f['steps_per_epoch']:,} steps, {f['pairs_per_epoch']:,} pairs; the run reads the text "
        f"{f['epochs']:.1f} times",
        "vocabulary": f"{f['vocab_size']:,} entries, {pieces}, "
        f"{f['unk_rate']:.4%} unknown{source[f['tokens_from']]}",
        "entropy": f"{f['unigram_entropy']:.3f} nats a token (unigram)",
        "as written": f.get("line_written", ""),
        "as read": f.get("line_read", ""),
    }


def show_batch(
    config: Config,
    set_: Set = None,
    pairs: int = count(4, "Number of pairs to print.", "-n"),
    stats: bool = flag("Measure the stream instead.", "--stats"),
    batches: int = count(200, "Number of batches to measure, with --stats."),
    json_: JsonLines = False,
) -> None:
    """Show what the model will read, or measure it.

    It prints a line of the text as written and as read, and the share of unknown tokens. Decoded pairs with
    their label follow. A masked token is printed as shown<original>.

    Example: bertcli show-batch quickstart -n 2
    """
    from bertcli.batches import share, stream_stats
    from bertcli.batches.stream import training_stream
    from bertcli.config import load, schema
    from bertcli.corpus import build, files, shown
    from bertcli.training.recipe import decide_recipe

    run = decide_recipe(load.load_config(schema.PretrainConfig, config, set_), say)
    store = build.prepare_store(run, say)
    stream = training_stream(run, store)

    if stats:
        workers = 0 if run.data.workers == "auto" else run.data.workers
        cut = run.training.micro_batch_size
        micro_batch_size = run.training.largest_batch if cut == "auto" else cut
        steps = stream.steps(0, batches, share.Share(micro_batch_size), workers)
        measured = stream_stats.measure_stream(stream, steps, store.tokenizer, names=run.corpus.source_names)
        measured["tokens_per_word"] = store.manifest.tokens_per_word
        print(json.dumps(measured) if json_ else _table(measured))
        return
    color = sys.stdout.isatty() and not json_
    look = shown.look_at_lines(files.corpus_files(run.corpus, missing_ok=True), run.corpus, store.tokenizer)
    unknown = store.manifest.unk_rate
    if look is not None and json_:
        seen = {"written": look.written, "read": look.read, "unk_rate": unknown}
        print(json.dumps(seen, ensure_ascii=False))
    elif look is not None:
        print(f"as written: {look.written}\nas read:    {look.read}")
        print(f"unknown:    {unknown:.2%} of the tokens\n")
    for label, text in stream_stats.show_pairs(
        stream[0], store.tokenizer, stream.pairs.labels, at_most=pairs, color=color
    ):
        if json_:
            print(json.dumps({"label": label, "text": text}, ensure_ascii=False))
        else:
            print(f"{label or 'text'}: {text}\n", file=raw_stream(sys.stdout) if color else None)


def _table(measured: dict[str, object]) -> str:
    def show(value: object) -> str:
        if isinstance(value, list):
            return " ".join(map(show, value))
        if isinstance(value, dict):
            return " ".join(f"{name} {show(each)}" for name, each in value.items())
        return f"{value:.4f}" if isinstance(value, float) else str(value)

    return "\n".join(f"{name:<24}{show(value)}" for name, value in measured.items())
