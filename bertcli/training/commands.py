"""The commands that a run names: what to try first with the new model, and how to resume.

The first one uses the user's own text and can be copied into a shell as it is.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bertcli.corpus.token_store import OpenStore, TokenStore
from bertcli.folders.locate import GENERATOR
from bertcli.folders.run_layout import RunLayout, step_name
from bertcli.tasks.examples import Example
from bertcli.tokenizer.pieces import BLANK, needs_no_blank
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training import ranks

_FEWEST_TOKENS, _MOST_TOKENS = 5, 12
_SENTENCES = 1000
"""Largest number of sentences that are searched."""
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines, directions of writing, halves of surrogate pairs."""


def mask_command(model: Path, store: OpenStore) -> str:
    """The command `bertcli predict-mask` on a held-out sentence, or its start, with one word masked."""
    words = model / GENERATOR
    side = store.heldout if store.heldout.num_sentences else store.train
    texts = (_masked(ids, store.tokenizer) for ids in _sentences(side))
    text = next(filter(None, texts), store.tokenizer.mask_token)
    return _command("predict-mask", words if words.is_dir() else model, [text])


def predict_command(model: Path, examples: Sequence[Example], has_head: bool) -> str:
    """The command `bertcli predict` on the texts of the first of `examples` that a command line can hold.

    A model without a head, which makes vectors, gets `bertcli similarity`, or `bertcli embed` for one text.
    """
    excerpts = ([_shortened(*each) for each in example.excerpts] for example in examples)
    texts = next(filter(_can_be_given, excerpts), ["TEXT"])
    verb = "predict" if has_head else "similarity" if len(texts) > 1 else "embed"
    return _command(verb, model, texts)


def _command(verb: str, model: Path, texts: Sequence[str]) -> str:
    ends_options = ["--"] if any(text.startswith("-") for text in texts) else []
    return shlex.join(["bertcli", verb, str(model), *ends_options, *texts])


def _sentences(side: TokenStore) -> Iterator[list[int]]:
    """The ids of the first sentences, or their beginnings."""
    for number in range(min(_SENTENCES, side.num_sentences)):
        start, end = side.sentences[number : number + 2].tolist()
        yield side.ids[start : min(end, start + _MOST_TOKENS + 1)].tolist()


def _masked(ids: list[int], tokenizer: Tokenizer) -> str | None:
    """The sentence with a mask in place of one word; None: it has no suitable word."""
    if len(ids) > _MOST_TOKENS:  # only the next piece shows where a word ends
        while ids and tokenizer.continuation[ids[-1]]:
            ids = ids[:-1]
        ids = ids[:-1]
    if len(ids) < _FEWEST_TOKENS or tokenizer.unk_id in ids:
        return None
    places = [place for place in range(1, len(ids)) if _is_word(ids, place, tokenizer)]
    if not places:
        return None
    place = min(places, key=lambda each: abs(each - 2 * len(ids) // 3))  # most words are on its left
    masked = [*ids[:place], tokenizer.mask_id, *ids[place + 1 :]]
    text = _spelled(masked, tokenizer.readable(ids[place]).startswith(BLANK), tokenizer)
    is_read = tokenizer.encode_with_masks([text])[0].count(tokenizer.mask_id) == 1
    return text if is_read and not _UNPRINTABLE.search(text) else None


def _is_word(ids: list[int], place: int, tokenizer: Tokenizer) -> bool:
    """True if the piece at `place` is a word. A single letter counts only in a script without blanks."""
    text = tokenizer.readable(ids[place]).removeprefix(BLANK)
    is_whole = not tokenizer.continuation[ids[place : place + 2]].any()
    return text.isalpha() and (needs_no_blank(text) or (is_whole and len(text) > 1))


def _spelled(masked: list[int], blank_before: bool, tokenizer: Tokenizer) -> str:
    """The text of the ids. Blanks beside letters that need none are left out if the ids stay the same."""
    text, mask = tokenizer.decode(masked).strip(), tokenizer.mask_token
    if blank_before:
        text = re.sub(rf" ?{re.escape(mask)}", f" {mask}", text)
    joined = re.sub(
        r"(?<=(\S)) (?=(\S))",
        lambda found: "" if any(map(needs_no_blank, found.groups())) else " ",
        text,
    )
    return joined if tokenizer.encode_with_masks([joined]) == [masked] else text


def _shortened(text: str, length: int) -> str:
    """The beginning of a text on one line; it ends at the end of a word if the text has blanks."""
    line = " ".join(_UNPRINTABLE.sub(" ", text[: 4 * length]).split())
    if len(line) <= length:
        return line
    return line[: length + 1].rpartition(" ")[0] or line[:length]


def _can_be_given(texts: Sequence[Any]) -> bool:
    """True if `bertcli predict` reads these as texts: none is empty, and a single one is no file or pipe."""
    return all(texts) and (len(texts) > 1 or not (texts[0] == "-" or Path(texts[0]).is_file()))


def resume_command(verb: str, folder: Path) -> str:
    """The command that resumes the run in `folder`, with as many processes on this machine as now."""
    launcher = ""
    if ranks.num_ranks() > 1:
        launcher = f"torchrun --nproc-per-node {ranks.num_local_ranks()} -m "
    return f"{launcher}bertcli {verb} {shlex.quote(str(folder))} --resume"


def stopped_at_once(layout: RunLayout, command: str) -> str:
    """The line about a run that ended without saving. `command`: the command that resumes it."""
    complete = layout.steps()
    if not complete:
        return f"stopped at once: no checkpoint was saved yet; from the first step: {command}"
    step = int(step_name(complete[0]).removeprefix("step-"))
    return f"stopped at once: all after the checkpoint of step {step} is lost; to go on from there: {command}"
