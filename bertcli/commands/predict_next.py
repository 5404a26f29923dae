"""`bertcli predict-next MODEL A B`: the probability that text B follows text A."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bertcli.commands.options import Device, JsonLines, Model
from bertcli.config.section import MOST_ROWS


def predict_next(
    model: Model,
    texts: Annotated[list[str] | None, typer.Argument(metavar="A B", help="The two texts.")] = None,
    input_: Annotated[
        Path | None, typer.Option("--input", help="A file with a pair a line: A, a tab, B. - reads a pipe.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, max=MOST_ROWS, help="Pairs at once.")] = 32,
    device: Device = "auto",
    json_: JsonLines = False,
) -> None:
    """Predict how likely text B follows text A.

    The next-sentence head predicts it. Give a pair on the command line, or pairs by --input or standard
    input. A model pretrained with `objective: mlm` has no such head, and is refused; so is every family but
    BERT.

    Example: bertcli predict-next runs/quickstart "It was late." "The house was dark."
    """
    from bertcli.errors import UserError
    from bertcli.hardware import resolve_device
    from bertcli.hf.folder import load_model_folder
    from bertcli.hf.lengths import LongRows
    from bertcli.hf.locate import resolve_model
    from bertcli.inference.lines import read_lines
    from bertcli.inference.next_sentence import Pair, pairs_of, score_pairs

    if texts and texts != ["-"]:
        given = [line.text for line in read_lines(texts, input_)]
        if len(given) != 2:
            raise UserError(f"give two texts, A and B, each in quotation marks; found {len(given)}")
        pairs = iter([Pair(given[0], given[1], "the pair")])
    else:
        pairs = pairs_of(read_lines(texts or [], input_))
    folder = resolve_model(model)
    loaded, long_rows = load_model_folder(folder), LongRows(folder)
    for scored in score_pairs(
        loaded, pairs, batch_size, device=resolve_device(device), count=long_rows.count
    ):
        if json_:
            print(json.dumps(scored.as_json(), ensure_ascii=False), flush=True)
        else:
            print(f"{scored.is_next_probability:7.2%}  {scored.text_a}  ->  {scored.text_b}", flush=True)
    long_rows.tell()
