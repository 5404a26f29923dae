"""`bertcli extend-vocab MODEL CONFIG OUT`: a model whose vocabulary has the words of a corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bertcli.commands.options import Config, Json, Model, Set
from bertcli.config.section import MOST
from bertcli.terminal import say


def extend_vocab(
    model: Model,
    config: Config,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write: a new one, or empty.")],
    add: Annotated[int, typer.Option("--add", min=1, max=MOST, help="New pieces.")] = 500,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Add the pieces to a model's vocabulary that shorten a corpus most; CONFIG names the corpus.

    Each new piece starts with the mean of the pieces that it replaces. Go on with the result by
    model.init_from, so that it learns them.

    Example: bertcli extend-vocab runs/novels configs/novels.yaml runs/extended --add 500
    """
    from bertcli.config.load import load_config
    from bertcli.config.schema import PretrainConfig
    from bertcli.hf.convert import check_new
    from bertcli.hf.extend import write_extended
    from bertcli.hf.fill import DROPPED
    from bertcli.hf.locate import resolve_model
    from bertcli.store.corpus_files import encoding_notes, find_corpus
    from bertcli.store.matching import output_paths
    from bertcli.store.progress import progress_display
    from bertcli.text.new_pieces import extend
    from bertcli.text.sample import sample_paragraphs, sample_share
    from bertcli.text.tokenizer import Tokenizer

    run, folder = load_config(PretrainConfig, config, set_), resolve_model(model)
    check_new(out)  # before the corpus is read
    sources = find_corpus(run.corpus, output_paths(run))
    for note in encoding_notes(sources, run.corpus):
        say(note)
    with progress_display("reading", sources, say) as advance:
        texts = sample_paragraphs(sources, run.corpus, sample_share(sources), progress=advance)
        extended = extend(Tokenizer.load(folder), texts, add, report=say)
    dropped = write_extended(folder, out, extended.tokenizer, replaced=extended.replaced)
    if dropped:
        say(f"{DROPPED}: {', '.join(dropped)}")
    added = len(extended.replaced)
    summary = {
        "folder": str(out),
        "added": added,
        "vocab_size": extended.tokenizer.vocab_size,
        "pieces_per_word_before": extended.before,
        "pieces_per_word_after": extended.after,
    }
    if json_:
        print(json.dumps(summary))
        return
    first = extended.tokenizer.vocab_size - added
    shown = ", ".join(extended.tokenizer.readable(first + number) for number in range(min(10, added)))
    say(f"{added:,} new pieces, the most useful ones: {shown}")
    say(f"pieces a word of this corpus: {extended.before:.3f} before, {extended.after:.3f} after")
    print(out)
