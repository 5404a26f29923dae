"""What each token of a row attends to in every layer and head: probabilities, of tokens and of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertcli.config.run import with_values
from bertcli.config.task import TaskSettings
from bertcli.folders.lengths import LongRows
from bertcli.folders.model_folder import load_encoder_folder
from bertcli.folders.task_folder import folder_task, load_task_folder, refuse_vectors
from bertcli.inference.attributions import Decision, decide, find_answer
from bertcli.inference.inputs import adapt_settings
from bertcli.inference.predict import Runner, only_numbers, runner_of
from bertcli.model.encoder import Body
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.tasks.examples import Example
from bertcli.tasks.files import settings_of_texts
from bertcli.tasks.row_words import ReadRow, read_texts
from bertcli.tasks.supervised import task_class
from bertcli.tokenizer.tokenizer import Tokenizer

MOST_TOKENS = 512
"""Most tokens of a row: the probabilities of all layers and heads grow with the square of its length."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A word, or a special token: its text, and the positions of its tokens in the row."""

    text: str
    tokens: range
    is_special: bool


@dataclass(frozen=True, slots=True)
class Link:
    """Two words: `query` attends to `key` with the probability `weight`."""

    query: str
    key: str
    weight: float


@dataclass(frozen=True)
class Attention:
    """The attention of a row of T tokens. L is the axis of layers and U that of units in names of tensors.

    Attributes:
        read: the row and its words.
        tokens: the piece of each token, in readable form.
        layers: the numbers of the layers, from 0.
        probabilities_LNTT: float32 on the CPU; each token (row) attends to all tokens (columns), with sum 1.
    """

    read: ReadRow
    tokens: tuple[str, ...]
    layers: tuple[int, ...]
    probabilities_LNTT: Tensor

    @property
    def units(self) -> list[Unit]:
        """Words and special tokens, in the order of the row."""
        words = [Unit(word.text, word.tokens, False) for word in self.read.words]
        own = {place for word in words for place in word.tokens}
        special = [
            Unit(token, range(place, place + 1), True)
            for place, token in enumerate(self.tokens)
            if place not in own
        ]
        return sorted([*words, *special], key=lambda unit: unit.tokens.start)

    @property
    def heads(self) -> int:
        """The number of heads of each layer."""
        return self.probabilities_LNTT.shape[1]

    def of_layers(self, layers: Sequence[int]) -> Attention:
        """The attention of these layers alone. Raises `UserError` for one that is not there."""
        for layer in layers:
            _check("--layers", layer, self.layers)
        chosen = [self.layers.index(layer) for layer in layers]
        return replace(self, layers=tuple(layers), probabilities_LNTT=self.probabilities_LNTT[chosen])

    def between_units(self) -> Tensor:
        """The attention of each unit to each other one, [L, N, U, U]; each row sums to 1.

        It is summed over the tokens that are attended to, and averaged over the tokens that attend (Clark et
        al. 2019, section 4.1).
        """
        member_UT = torch.zeros(len(self.units), len(self.tokens))
        for number, unit in enumerate(self.units):
            member_UT[number, list(unit.tokens)] = 1
        return member_UT / member_UT.sum(dim=1, keepdim=True) @ self.probabilities_LNTT @ member_UT.T

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "tokens": self.tokens,
            "words": [
                {"text": word.text, "tokens": list(word.tokens), "segment": word.segment}
                for word in self.read.words
            ],
            "layers": self.layers,
            "attention": [
                [[[round(p, 6) for p in row] for row in head] for head in layer]
                for layer in self.probabilities_LNTT.tolist()
            ],
        }


@torch.inference_mode()
def attention_of(body: Body, tokenizer: Tokenizer, read: ReadRow) -> Attention:
    """The attention of all layers, before dropout, on the plain path of the model (`Body.trace`)."""
    device, row = next(body.parameters()).device, read.row
    segments_T = (torch.arange(row.length) >= row.second_starts).long().to(device)
    _, probabilities = body.eval().trace(torch.tensor([list(row.ids)], device=device), segments_T[None])
    stacked_LNTT = torch.cat([each_1NTT.float().cpu() for each_1NTT in probabilities])
    tokens = tuple(tokenizer.readable(id_) for id_ in row.ids)
    return Attention(
        read, tokens, tuple(range(len(stacked_LNTT))), probabilities_LNTT=only_numbers(stacked_LNTT)
    )


def choose_head(attention: Attention, layer: int | None = None, head: int | None = None) -> tuple[int, int]:
    """A layer and a head that are worth a look: `layer` and `head` if they are given, else those with the
    highest focus.

    The focus is the mean, over the words, of the largest weight to a word that is not beside them. The mean
    weight that all words give to that word is subtracted first. This leaves out heads that attend to the word
    before or after, or to one word from everywhere: they are the strongest of most models, and all alike.
    Raises `UserError` for a layer or a head that is not there.
    """
    layers = attention.layers if layer is None else (_check("--layer", layer, attention.layers),)
    all_heads = range(attention.heads)
    heads = all_heads if head is None else (_check("--head", head, all_heads),)
    words = [number for number, unit in enumerate(attention.units) if not unit.is_special]
    between_LNWW = attention.between_units()[:, :, words][:, :, :, words]
    own_LNWW = between_LNWW - between_LNWW.mean(dim=2, keepdim=True)
    numbers_W = torch.arange(len(words))
    is_near_WW = (numbers_W[:, None] - numbers_W).abs() <= 1
    far_LNWW = own_LNWW.masked_fill(is_near_WW, 0.0)
    focus_LN = far_LNWW.amax(dim=-1).mean(dim=-1) if words else torch.zeros(far_LNWW.shape[:2])
    return max(
        ((one, other) for one in layers for other in heads),
        key=lambda chosen: float(focus_LN[attention.layers.index(chosen[0]), chosen[1]]),
    )


def reason_of(layer: int | None = None, head: int | None = None) -> str:
    """The reason why `choose_head` takes a head, in words."""
    if layer is not None and head is not None:
        return "the head that was asked for"
    among = "of all heads"
    if layer is not None:
        among = f"of the heads of layer {layer}"
    elif head is not None:
        among = f"of head {head} in all layers"
    return f"{among}, the one whose words most strongly attend to a word of their own, not beside them"


def strongest_links(attention: Attention, layer: int, head: int, number: int) -> tuple[list[Link], float]:
    """The strongest links between words in a head, the strongest first; and the share of the words' attention
    that goes to special tokens."""
    units = attention.units
    between_UU = attention.between_units()[attention.layers.index(layer), head]
    words = [place for place, unit in enumerate(units) if not unit.is_special]
    links = [
        Link(units[query].text, units[key].text, float(between_UU[query, key]))
        for query in words
        for key in words
    ]
    links.sort(key=lambda link: -link.weight)
    share = 1 - float(between_UU[words][:, words].sum()) / max(1, len(words))
    return links[:number], share


def _check(option: str, number: int, known: Sequence[int]) -> int:
    if number in known:
        return number
    what = "layers" if option.startswith("--layer") else "heads"
    numbers = f"0 to {known[-1]}" if list(known) == list(range(len(known))) else ", ".join(map(str, known))
    raise UserError(f"{option}: there is no {number}; the {what} are {numbers}")


@dataclass(frozen=True)
class OneRow:
    """A model's body and the row that it reads.

    Attributes:
        texts: the texts as they were given.
        task: the model that answers, and its answer; None if it was not fine-tuned.
    """

    body: Body
    tokenizer: Tokenizer
    texts: tuple[str, ...]
    read: ReadRow
    task: tuple[Runner, Decision] | None


def read_one(
    folder: Path,
    texts: Sequence[str],
    read: Callable[[TaskSettings], Iterable[Example]],
    is_pair: bool,
    explained: bool,
    target: str | None,
    device: torch.device,
) -> OneRow:
    """The row of one text or pair as the model reads it; for a fine-tuned model, the row that gives its
    answer.

    Args:
        texts: the texts that were given one by one.
        read: the settings of a task -> the rows to show, of which there must be one.
        is_pair: whether a fine-tuned model reads pairs although its folder does not say so.
        explained: whether the model must be a fine-tuned one that answers.
        target: the answer of a fine-tuned model, by its name or number; None: its own.

    Raises:
        UserError: as `load_task_folder`, `refuse_vectors`, `read` and `decide`; more than one row.
    """
    task = folder_task(folder)
    if explained or (task is not None and task_class(task).head is not None):
        loaded = load_task_folder(folder)
        refuse_vectors(loaded.settings.type, folder)
        settings = adapt_settings(loaded.settings, is_pair=is_pair)
        settings = with_values(settings, {"max_length": min(settings.max_length, MOST_TOKENS)})
        runner = runner_of(loaded, device, settings)
        rows = runner.task.at_words(read(settings), settings, loaded.tokenizer)
        example = _only(texts, list(rows), settings)
        names = runner.task.answer_names(example)
        decision = decide(runner, example, None if target is None else find_answer(names, target))
        row = _told(decision.read, folder)
        return OneRow(loaded.model.body, loaded.tokenizer, example.texts, read=row, task=(runner, decision))
    if is_pair:
        raise UserError("--pair: this model has no task, and reads one text or two; leave it out")
    settings = settings_of_texts(["text_a", "text_b"] if len(texts) == 2 else "text")
    example = _only(texts, read(settings), settings)
    model, tokenizer = load_encoder_folder(folder)
    length = min(model.architecture.usable_positions, MOST_TOKENS)
    row = _told(read_texts(tokenizer, example.texts, length), folder)
    return OneRow(model.to(device).body, tokenizer, example.texts, read=row, task=None)


def _only(texts: Sequence[str], rows: Iterable[Example], settings: TaskSettings) -> Example:
    examples = list(islice(rows, 2))
    if len(examples) == 1:
        return examples[0]
    if not examples:
        raise UserError("there is no row to show")
    task = task_class(settings.type)
    may_be_pair = task.takes_pairs and task.is_one_text(settings)
    pair = "; for a pair, with a model that was fine-tuned on one text, add --pair" if may_be_pair else ""
    raise UserError(f"one row is shown at a time, and there are more{pair if len(texts) == 2 else ''}")


def _told(read: ReadRow, folder: Path) -> ReadRow:
    if read.dropped:
        say(f"{read.dropped:,} tokens of the text are not in this row, which holds {read.row.length:,}")
    long_rows = LongRows(folder)
    long_rows.count([read.row.length])
    long_rows.tell()
    return read
