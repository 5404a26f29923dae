"""`bertcli convert SRC DST`: any model as a clean folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertcli.terminal import say


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A run, any model folder, a hub id, or a TensorFlow checkpoint: folder or prefix.",
        ),
    ],
    destination: Annotated[
        Path, typer.Argument(metavar="DST", help="The folder to write: a new one, or empty.")
    ],
    cased: Annotated[
        bool | None,
        typer.Option(
            "--cased/--uncased",
            help="For a TensorFlow checkpoint. Default: cased if the vocabulary has upper case.",
        ),
    ] = None,
) -> None:
    """Write a model as safetensors with current names.

    The source may have .bin weights, old names, weights in several files, or be a TensorFlow checkpoint by
    Google, which is read without TensorFlow. Labels are kept, and the heads that one class of transformers
    holds together; weights of other heads are dropped, and named. The result is loaded and compared with the
    source on the same texts; a difference above 1e-6 is an error, and nothing is written.

    Example: bertcli convert uncased_L-12_H-768_A-12 bert-base
    """
    from bertcli.hf.convert import convert as run
    from bertcli.hf.fill import DROPPED

    done = run(source, destination, cased)
    dropped = done.report.dropped()
    buffers = [name for name in done.report.left_aside if name not in dropped]
    for what, names in (
        (DROPPED, dropped),
        ("not used", buffers),
        ("state of its training", done.optimizer),
    ):
        if names:
            say(f"{what}: {', '.join(names)}")
    say(f"tokenizer: {'uncased' if done.lowercase else 'cased'}")
    print(f"{destination}: {len(done.report.loaded)} tensors; largest difference {done.difference:g}")
