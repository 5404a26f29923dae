"""`bertcli predict-mask`, `predict-next`: the answers of a pretrained model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bertcli.cli.options import Device, JsonLines, Model, argument, option
from bertcli.config import MOST_ROWS
from bertcli.system.errors import UserError

if TYPE_CHECKING:
    from bertcli.inference.fill_mask import FilledText


def predict_mask(
    model: Model,
    texts: list[str] | None = argument(None, "Text with [MASK] in it; - reads a pipe.", "TEXT"),
    top_k: int = option(5, "Number of words per mask."),
    input_: str | None = option(
        None, "A file with a text a line; each text has a result.", "--input", metavar="FILE"
    ),
    batch_size: int = option(32, "Number of texts computed at once.", min=1, max=MOST_ROWS),
    device: Device = "auto",
    json_: JsonLines = False,
) -> None:
    """Fill every [MASK] with the likeliest words.

    It prints the filled sentence, and the words of each mask with their probabilities. [MASK] is read as the
    model's own mask token, such as <mask>. A ▁ before a word stands for the blank that belongs to its piece.

    Text comes from the command line, from --input, or from standard input. Each mask is predicted separately,
    with all the others still masked. Special tokens are never predicted.

    Example: bertcli predict-mask runs/quickstart "The [MASK] was dark." --top-k 3
    """
    from bertcli.folders import lengths, locate, model_folder
    from bertcli.inference.fill_mask import fill_masks
    from bertcli.inference.lines import read_lines
    from bertcli.system.hardware import resolve_device

    lines = read_lines(texts or [], input_)
    folder = locate.resolve_model(model)
    loaded, long_rows = model_folder.load_model_folder(folder, pairs=False), lengths.LongRows(folder)
    for filled in fill_masks(
        loaded, lines, top_k, batch_size=batch_size, device=resolve_device(device), count=long_rows.count
    ):
        readable = _readable(filled, loaded.tokenizer.mask_token)
        print(json.dumps(filled.as_json(), ensure_ascii=False) if json_ else readable, flush=True)
    long_rows.tell()


def _readable(filled: FilledText, mask: str) -> str:
    """The filled sentence, and a table of each mask's words."""
    lines = [filled.filled]
    for number, predictions in enumerate(filled.masks, start=1):
        title = f"{mask} {number}" if len(filled.masks) > 1 else mask
        for rank, prediction in enumerate(predictions):
            lines.append(
                f"  {title if rank == 0 else '':10}{prediction.probability:7.2%}  {prediction.token}"
            )
    return "\n".join(lines)


def predict_next(
    model: Model,
    texts: list[str] | None = argument(None, "The two texts.", "A B"),
    input_: str | None = option(
        None, "A file with a pair a line: A, a tab, B. - reads a pipe.", "--input", metavar="FILE"
    ),
    batch_size: int = option(32, "Number of pairs computed at once.", min=1, max=MOST_ROWS),
    device: Device = "auto",
    json_: JsonLines = False,
) -> None:
    """Predict how likely text B follows text A.

    The next-sentence head predicts it. Give a pair on the command line, or pairs by --input or standard
    input. A model pretrained with `objective: mlm` has no such head, and is refused; so is every family but
    BERT.

    Example: bertcli predict-next runs/quickstart "It was late." "It was dark."
    """
    from bertcli.folders import lengths, locate, model_folder
    from bertcli.inference import fill_mask, lines
    from bertcli.system.hardware import resolve_device

    if texts and texts != ["-"]:
        given = [line.text for line in lines.read_lines(texts, input_)]
        if len(given) != 2:
            raise UserError(f"give two texts, A and B, each in quotation marks; found {len(given)}")
        pairs = iter([fill_mask.Pair(given[0], given[1], "the pair")])
    else:
        pairs = fill_mask.pairs_of(lines.read_lines(texts or [], input_))
    folder = locate.resolve_model(model)
    loaded, long_rows = model_folder.load_model_folder(folder), lengths.LongRows(folder)
    for scored in fill_mask.score_pairs(
        loaded, pairs, batch_size, device=resolve_device(device), count=long_rows.count
    ):
        if json_:
            print(json.dumps(scored.as_json(), ensure_ascii=False), flush=True)
        else:
            print(f"{scored.is_next_probability:7.2%}  {scored.text_a}  ->  {scored.text_b}", flush=True)
    long_rows.tell()
