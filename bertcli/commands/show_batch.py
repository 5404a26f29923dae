"""`bertcli show-batch CONFIG`: what the model will read, as text or in numbers."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from bertcli.commands.options import Config, JsonLines, Set
from bertcli.config.section import MOST
from bertcli.terminal import raw_stream, say


def show_batch(
    config: Config,
    set_: Set = None,
    pairs: Annotated[int, typer.Option("-n", min=1, max=MOST, help="Pairs to print.")] = 4,
    stats: Annotated[bool, typer.Option("--stats", help="Measure the stream instead.")] = False,
    batches: Annotated[int, typer.Option(min=1, max=MOST, help="With --stats: batches to measure.")] = 200,
    json_: JsonLines = False,
) -> None:
    """Show what the model will read, or measure it.

    Prints a line of the text as written and as read, the share of unknown tokens, then decoded pairs with
    their label. A masked token is printed as shown<original>.

    Example: bertcli show-batch configs/quickstart.yaml -n 2
    """
    from bertcli.config.load import load_config
    from bertcli.config.schema import PretrainConfig
    from bertcli.data.share import Share
    from bertcli.data.stream import training_stream
    from bertcli.data.stream_stats import measure_stream, show_pairs
    from bertcli.runs.recipe import decided_config
    from bertcli.store.build import prepare_store
    from bertcli.text.shown import look_at_lines
    from bertcli.text.sources import find_present

    run = decided_config(load_config(PretrainConfig, config, set_), say)
    store = prepare_store(run, say)
    stream = training_stream(run, store)

    if stats:
        workers = 0 if run.data.workers == "auto" else run.data.workers
        cut = run.training.micro_batch_size
        micro_batch_size = run.training.largest_batch if cut == "auto" else cut
        steps = stream.steps(0, batches, Share(micro_batch_size), workers)
        measured = measure_stream(stream, steps, store.tokenizer)
        measured["tokens_per_word"] = store.manifest.tokens_per_word
        print(json.dumps(measured) if json_ else _table(measured))
        return
    color = sys.stdout.isatty() and not json_
    look = look_at_lines(find_present(run.corpus.files), run.corpus, store.tokenizer)
    unknown = store.manifest.unk_rate
    if look is not None and json_:
        seen = {"written": look.written, "read": look.read, "unk_rate": unknown}
        print(json.dumps(seen, ensure_ascii=False))
    elif look is not None:
        print(f"as written: {look.written}\nas read:    {look.read}")
        print(f"unknown:    {unknown:.2%} of the tokens\n")
    for label, text in show_pairs(
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
