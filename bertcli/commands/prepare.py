"""`bertcli prepare CONFIG`: a corpus -> a vocabulary and a token store."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertcli.commands.options import Config, Json, Set
from bertcli.terminal import say

if TYPE_CHECKING:
    from bertcli.store.token_store import OpenStore


def prepare(
    config: Config,
    set_: Set = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a store that does not match the config.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compare all of the store with its hashes, however large it is."),
    ] = False,
    json_: Json = False,
) -> None:
    """Build only the vocabulary and the token store, and print what is in them.

    A store that matches the config is opened; an interrupted build continues where it stopped. In a store
    over 2 GB, 1,000 blocks are compared with their hashes, or all with --verify.

    Example: bertcli prepare configs/quickstart.yaml --set output_dir=runs/look
    """
    from bertcli.checkpoints.run_contents import check_spared
    from bertcli.config.load import load_config
    from bertcli.config.schema import PretrainConfig
    from bertcli.distributed import ranks
    from bertcli.runs.identity import pretraining_inputs
    from bertcli.runs.recipe import decided_config
    from bertcli.store.begin import partial_of, place_of
    from bertcli.store.build import prepare_store
    from bertcli.store.fit import check_known, misfits

    with ranks.joined():
        checked = ranks.on_first(
            lambda: decided_config(load_config(PretrainConfig, config, set_), say, overwrite)
        )
        if overwrite:
            removed, advice = [place_of(checked), partial_of(checked)], "name another folder in corpus.store"
            ranks.on_first(lambda: check_spared(removed, pretraining_inputs(checked), advice))
        start = time.monotonic()
        store = prepare_store(
            checked,
            say,
            overwrite,
            team=ranks,
            verify=verify,
            check=lambda manifest: check_known(checked, manifest.unk_rate),
        )
        for line in misfits(checked, store.manifest):
            say(f"warning: {line}")
        summary = summarize(store, time.monotonic() - start)
        print(json.dumps(summary, ensure_ascii=False) if json_ else _table(summary))


def summarize(store: OpenStore, seconds: float) -> dict[str, Any]:
    """The object of `--json`: counts of both sides, sizes in bytes, rates as fractions, entropy in nats."""
    manifest = store.manifest
    train, heldout = manifest.train, manifest.heldout
    num_bytes = train.bytes + heldout.bytes
    return {
        "store": str(store.folder),
        "files": len(manifest.sources),
        "bytes": num_bytes,
        "words": train.words + heldout.words,
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
        "mb_per_second": num_bytes / 1e6 / seconds,
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
    return "\n".join(f"{name:<13}{value}" for name, value in rows.items())
