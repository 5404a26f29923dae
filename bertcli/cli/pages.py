"""`bertcli report`, `attention`: an HTML page of a run, or of what a model attends to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from bertcli.cli.options import Device, Input, Json, Model, argument, count, flag, option
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

if TYPE_CHECKING:
    from bertcli.inference.attention import Attention
    from bertcli.inference.attributions import Attributions


def report(
    runs: list[Path] = argument(..., "The folder of a run, or of several runs of one kind.", "RUN..."),
    output: Path | None = option(
        None, "The page to write; default: report.html in the (first) run folder.", metavar="FILE.html"
    ),
    check_data: bool = flag(
        "Read a corpus, or labeled files of more than 10 MB, again, and show what to mend.", "--check-data"
    ),
    attributions: bool = flag("Show the words that decided the first 20 mistakes.", "--attributions"),
    device: Device = "auto",
) -> None:
    """Make one HTML page of a run, or of several.

    It has the scores and what they mean, curves, data, recipe, and examples. The examples of a pretrained
    model are held-out sentences with a masked word. Those of a fine-tuned model are its answers on the dev
    data, which are computed now, and its mistakes. A run may be finished, stopped or running. Several runs
    are compared: scores, curves, and the keys of the config in which they differ.

    The page holds everything that it needs, and no script; it can be sent to others. It shows texts of the
    data.

    Example: bertcli report runs/quickstart
    """
    from bertcli.reports import build, page

    print(build.write_report(runs, page.ReportOptions(device, check_data, attributions), output))


_BAR = 20
"""Number of signs in the longest bar."""


def attention(
    model: Model,
    texts: list[str] | None = argument(
        None, "A text, a pair, or one row of the task; - reads a pipe.", "TEXT"
    ),
    input_: Input = None,
    output: Path | None = option(
        None, "The page to write (.html); default: a table in the terminal.", metavar="FILE"
    ),
    json_: Json = False,
    layer: int | None = option(None, "Layer of the table, from 0; the page shows it first."),
    head: int | None = option(None, "Head of the table, from 0; the page shows it first."),
    layers: str | None = option(
        None, "Layers of the page and of --json; default: all that fit in 1 MB.", metavar="A,B,..."
    ),
    top_k: int = count(10, "Number of links in the table."),
    attributions: bool = flag("Show which words decided the answer of a task model.", "--attributions"),
    target: str | None = option(
        None, "The answer to explain: a label, a word or a choice, or its number from 0.", metavar="NAME"
    ),
    pair: bool = flag("The model reads pairs, which its folder does not say.", "--pair"),
    device: Device = "auto",
) -> None:
    """Show what each word of a text attends to.

    --output writes a page that needs no network: lines between words, for each layer and head. The default
    output is a table of the strongest links of one head. --json prints the probabilities of all layers and
    heads. Layers and heads are counted from 0.

    A fine-tuned model reads the text as in bertcli predict: a pair, QUESTION CONTEXT, TEXT CHOICE CHOICE...
    --attributions gives each word a score: what it adds to the model's output for the answer (a logit, or the
    value itself), against a row of masks (integrated gradients). The output for tags is that of the word that
    is least likely to be outside of all entities, unless --target names another. Attention alone explains no
    answer.

    Example: bertcli attention runs/quickstart "It was dark." --output page.html
    """
    from bertcli.folders.locate import resolve_model
    from bertcli.inference import attention, inputs, outputs
    from bertcli.inference.attributions import attribute
    from bertcli.system.hardware import resolve_device

    if json_ and output is not None:
        raise UserError("--json writes to standard output; leave it out, or leave out --output")
    if target is not None and not attributions:
        raise UserError("--target is the answer that --attributions explains; give both")
    if output is not None:
        outputs.check_output(output, [".html"], input_)
    folder = resolve_model(model)
    row = attention.read_one(
        folder,
        texts or [],
        lambda settings: inputs.read_inputs(texts or [], input_, settings, report=say),
        is_pair=pair,
        explained=attributions,
        target=target,
        device=resolve_device(device),
    )
    found = attention.attention_of(row.body, row.tokenizer, row.read)
    scored = attribute(*row.task) if attributions and row.task is not None else None
    if layers is not None:
        found = found.of_layers(_numbers(layers))
    chosen = attention.choose_head(found, layer, head)
    if json_:
        scores = {} if scored is None else {"attributions": scored.as_json()}
        print(json.dumps({"texts": row.texts, **found.as_json(), **scores}, ensure_ascii=False))
        return
    reason = attention.reason_of(layer, head)
    if output is None:
        print("\n".join(_table(found, chosen, reason, top_k=top_k)))
        if scored is not None:
            print("\n".join(["", *_scores(scored)]))
        return
    from bertcli.reports.attention import attention_page, fit_layers

    fitted = fit_layers(found, chosen[0], layers is not None)
    if len(fitted.layers) < len(found.layers):
        numbers = ",".join(map(str, fitted.layers))
        say(f"not all layers fit in a page of 1 MB; it has {numbers} (--layers names others)")
    with outputs.opened(output) as file:
        file.write(
            attention_page(str(model), row.texts, fitted, head=chosen, reason=reason, attributions=scored)
        )
    say(f"{output}: open it in a browser")


def _numbers(layers: str) -> list[int]:

    names = [name.strip() for name in layers.split(",")]
    numbers = {int(name) for name in names if name.isdecimal()}
    if len(numbers) < len(names):
        raise UserError(f"--layers {layers}: give numbers from 0 with commas between them, each once: 0,5,11")
    return sorted(numbers)


def _table(found: Attention, chosen: tuple[int, int], reason: str, top_k: int) -> list[str]:
    """The strongest links of a head, for people."""
    from bertcli.inference.attention import strongest_links

    layer, head = chosen
    links, share = strongest_links(found, layer, head, number=top_k)
    width = max((len(link.query) for link in links), default=0)
    return [
        f"layer {layer}, head {head} ({reason})",
        f"special tokens get {share:.1%} of the attention of the words, and are left out here",
        *(f"{link.weight:7.1%}  {link.query:<{width}}  attends to  {link.key}" for link in links),
    ]


def _scores(scored: Attributions) -> list[str]:
    """The scores, one line for each word: its score, and a bar of its sign."""
    largest = max(map(abs, scored.scores), default=0.0) or 1.0
    width = max(map(len, scored.words), default=0)
    lines = [f"{scored.answer}: what each word adds to the model's output for it, against a row of masks"]
    for word, score in zip(scored.words, scored.scores, strict=True):
        bar = ("+" if score > 0 else "-") * round(_BAR * abs(score) / largest)
        lines.append(f"{score:+8.3f}  {word:<{width}}  {bar}".rstrip())
    difference = scored.value - scored.baseline
    whole = f"{difference:+.3f} ({scored.value:.3f} - {scored.baseline:.3f})"
    lines.append(f"{sum(scored.scores):+8.3f}  in all, of {whole}")
    if not scored.is_complete:
        lines.append(
            "the sum misses the difference: the model is too uneven on the way; read the scores with care"
        )
    return lines
