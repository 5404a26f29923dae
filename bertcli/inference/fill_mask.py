"""Texts with masks -> the words that the model predicts for them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertcli.batches.batch import batch_of
from bertcli.folders.model_folder import LoadedModel
from bertcli.inference.lines import Line
from bertcli.inference.predict import Answers, AsRead, in_similar_lengths, only_numbers
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.tasks.row_words import ReadRow, split_words
from bertcli.tokenizer.frame import Row
from bertcli.tokenizer.pieces import BLANK
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.wordpiece import NAMES

USUAL_MASK = NAMES["mask_token"]
"""The text that stands for the model's own mask token, whatever its name."""


@dataclass(frozen=True)
class Prediction:
    """A word for a mask.

    Attributes:
        token: a piece of the vocabulary, as `Tokenizer.readable` gives it: a WordPiece has its prefix if it
            continues a word; pieces of other kinds are text, with `▁` for the blank before a word.
        probability: the probability by a softmax over the full vocabulary.
    """

    token: str
    id: int
    probability: float


@dataclass(frozen=True)
class FilledText:
    """A text, and the predictions for each of its masks.

    Attributes:
        filled: `text` with each mask's likeliest word in its place.
        masks: the predictions for each mask, in the order of the text; the likeliest first.
    """

    text: str
    filled: str
    masks: list[list[Prediction]]

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        masks = [{"predictions": [dict(vars(prediction)) for prediction in mask]} for mask in self.masks]
        return {"text": self.text, "filled": self.filled, "masks": masks}


def fill_masks(
    loaded: LoadedModel,
    lines: Iterable[Line],
    top_k: int,
    batch_size: int,
    device: torch.device,
    count: Callable[[Iterable[int]], None] = lambda lengths: None,
) -> Iterator[FilledText]:
    """Fill every mask (`Tokenizer.mask_token`) of every line independently; the results are in order.

    `[MASK]` means a mask for every model; if the model's own has another name, this is said once. A blank
    line has no mask and an empty result, so that results and lines are parallel. Other special tokens are
    plain text. Special tokens are never predicted, because they are no targets in training; the probabilities
    are still those of the full softmax. `count` is called with the lengths of the rows.

    Raises `UserError` as `LoadedModel.need`, if `top_k` is out of range, or (while iterating) if another line
    has no mask or is too long for the model.
    """
    filler = MaskFiller(loaded, device)
    filler.check(top_k)
    said: list[str] = []

    def encode(some: list[Line]) -> list[Row]:
        mask = loaded.tokenizer.mask_token
        if not said and mask != USUAL_MASK and any(USUAL_MASK in line.text for line in some):
            said.append(f"{USUAL_MASK} is read as {mask}, the mask token of this model")
            say(said[0])
        return filler.encode(some)

    def compute(rows: list[Row]) -> list[list[list[Prediction]]]:
        return filler.compute(rows, top_k)

    results = in_similar_lengths(lines, batch_size, encode=encode, compute=compute, count=count)
    return (filler.filled(line.text, masks) for line, masks in results)


class MaskFiller:
    """A model with an MLM head, which fills the masks of rows. Raises `UserError` as `LoadedModel.need`."""

    def __init__(self, loaded: LoadedModel, device: torch.device) -> None:
        loaded.need("mlm_head")
        self.tokenizer, self._device = loaded.tokenizer, device
        self._model = loaded.model.to(device).eval()
        special = self.tokenizer.special_ids
        candidates = [i for i in range(self.tokenizer.vocab_size) if i not in special]
        self._candidates_C = torch.tensor(candidates, device=device)

    def check(self, top_k: int) -> None:
        """Raise `UserError` unless there are so many words."""
        if not 1 <= top_k <= len(self._candidates_C):
            raise UserError(
                f"--top-k {top_k}: give a number from 1 to {len(self._candidates_C)} (the vocabulary)"
            )

    def count(self, line: Line) -> int:
        """The number of masks in a text."""
        return line.text.replace(USUAL_MASK, self.tokenizer.mask_token).count(self.tokenizer.mask_token)

    def encode(self, lines: Sequence[Line]) -> list[Row]:
        """The row of each line. Raises `UserError` for a text that has no mask, or is too long."""
        tokenizer, mask = self.tokenizer, self.tokenizer.mask_token
        texts = [line.text.replace(USUAL_MASK, mask) for line in lines]
        rows = []
        for line, text, ids in zip(lines, texts, tokenizer.encode_with_masks(texts), strict=True):
            if mask not in text and text.strip():
                hint = f"; write it as {mask}" if mask.lower() in text.lower() else ""
                raise UserError(f"{line.where}: no {mask} in {_shortened(line.text)!r}{hint}")
            if ids.count(tokenizer.mask_id) != text.count(mask):
                raise UserError(
                    f"{line.where}: this tokenizer does not find every {mask} in {_shortened(line.text)!r}; "
                    "write a blank on both sides of each"
                )
            longest = self._model.architecture.usable_positions
            row = tokenizer.frame.row(ids)
            rows.append(_checked(row, longest, line.where, mend="shorten the text or split it"))
        return rows

    def read(self, line: Line) -> ReadRow:
        """The row of a line and its words; each mask is a word. Raises `UserError` as `encode`."""
        (row,), tokenizer = self.encode([line]), self.tokenizer
        text = line.text.replace(USUAL_MASK, tokenizer.mask_token)
        (placed,) = tokenizer.encode_with_spans([text], masks=True)
        return ReadRow(row, tuple(split_words(text, placed.spans, tokenizer.frame.a_starts)), 0)

    @torch.inference_mode()
    def compute(self, rows: Sequence[Row], top_k: int) -> list[list[list[Prediction]]]:
        """The `top_k` predictions for each mask of each row, the likeliest first."""
        tokenizer = self.tokenizer
        batch = batch_of(rows, tokenizer.pad_id, self._device)
        masked_M = (batch.ids_BT == tokenizer.mask_id).flatten().nonzero()[:, 0]
        logits_MV = only_numbers(self._model(*batch, masked_M).mlm_logits_MV)
        predictions = _top_predictions(logits_MV, self._candidates_C, top_k, tokenizer=tokenizer)
        return [[next(predictions) for id_ in row.ids if id_ == tokenizer.mask_id] for row in rows]

    def filled(self, text: str, masks: list[list[Prediction]]) -> FilledText:
        """A text with the predictions for its masks."""
        return _filled(text, masks, self.tokenizer)


class Masks(Answers):
    """(line, number of words for each mask) -> `FilledText`."""

    def __init__(self, filler: MaskFiller) -> None:
        self.filler = filler

    def encode(self, question: tuple[Line, int]) -> AsRead:
        line, top_k = question
        self.filler.check(top_k)
        (row,) = self.filler.encode([line])
        return AsRead((line, top_k, row), row.length)

    def compute(self, several: Sequence[AsRead]) -> list[FilledText]:
        lines, numbers, rows = zip(*(each.content for each in several), strict=True)
        found = self.filler.compute(rows, max(numbers))
        return [
            self.filler.filled(line.text, [mask[:top_k] for mask in masks])
            for line, top_k, masks in zip(lines, numbers, found, strict=True)
        ]


def _checked(row: Row, max_tokens: int, where: str, mend: str) -> Row:
    if row.length > max_tokens:
        raise UserError(
            f"{where}: {row.length} tokens with the special ones, but the model reads at most {max_tokens}; "
            f"{mend}"
        )
    return row


def _top_predictions(
    logits_MV: Tensor, candidates_C: Tensor, top_k: int, tokenizer: Tokenizer
) -> Iterator[list[Prediction]]:
    top = logits_MV.float().softmax(dim=-1)[:, candidates_C].topk(top_k, dim=-1)
    for ids, probabilities in zip(candidates_C[top.indices].tolist(), top.values.tolist(), strict=True):
        yield [Prediction(tokenizer.readable(i), i, p) for i, p in zip(ids, probabilities, strict=True)]


def _filled(text: str, masks: list[list[Prediction]], tokenizer: Tokenizer) -> FilledText:
    """The user's text with the likeliest piece for each mask, joined as the tokenizer would have cut it."""
    mask = tokenizer.mask_token
    filled, *parts = text.replace(USUAL_MASK, mask).split(mask)
    for predictions, part in zip(masks, parts, strict=True):
        best = predictions[0]
        if tokenizer.continuation[best.id]:
            before = filled.rstrip() if tokenizer.mask_strips else filled
            filled = before + best.token.removeprefix(tokenizer.spelling.prefix) + part
        elif best.token.startswith(BLANK) and not tokenizer.spelling.prefix:
            before = f"{filled.rstrip()} " if filled.strip() else ""
            filled = before + best.token.removeprefix(BLANK) + part
        else:
            filled += best.token + part
    return FilledText(text, filled, masks)


def _shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


@dataclass(frozen=True)
class Pair:
    """Two texts and their place."""

    text_a: str
    text_b: str
    where: str


@dataclass(frozen=True)
class ScoredPair:
    """A pair, and the probability that B follows A."""

    text_a: str
    text_b: str
    is_next_probability: float

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return dict(vars(self))


def pairs_of(lines: Iterable[Line]) -> Iterator[Pair]:
    """The pairs of lines "A, tab, B"; a blank line is a pair of empty texts, so that results and lines are
    parallel. Raises `UserError` for a line with another number of texts."""
    for line in lines:
        columns = line.text.split("\t") if line.text.strip() else ["", ""]
        if len(columns) != 2:
            raise UserError(
                f"{line.where}: expected two texts with a tab between them, found {len(columns)} columns"
            )
        yield Pair(columns[0], columns[1], line.where)


def score_pairs(
    loaded: LoadedModel,
    pairs: Iterable[Pair],
    batch_size: int,
    device: torch.device,
    count: Callable[[Iterable[int]], None] = lambda lengths: None,
) -> Iterator[ScoredPair]:
    """The NSP head's answer for each pair, in order (Devlin et al. 2019, section 3.1, task 2).

    `count` is called with the lengths of the rows.

    Raises `UserError` as `LoadedModel.need`, or (while iterating) if a pair is too long for the model.
    """
    model, tokenizer = loaded.model.to(device).eval(), loaded.tokenizer
    loaded.need("pair_head", "pooler")
    max_tokens = model.architecture.usable_positions

    @torch.inference_mode()
    def compute(rows: list[Row]) -> list[float]:
        batch = batch_of(rows, tokenizer.pad_id, device)
        none_M = torch.empty(0, dtype=torch.long, device=device)  # no masked word is predicted
        logits_B2 = model(*batch, none_M).pair_logits_B2
        return only_numbers(logits_B2).float().softmax(dim=-1)[:, 0].tolist()  # label 0: IsNext

    def encode(some: list[Pair]) -> list[Row]:
        ids = iter(tokenizer.encode_batch([text for each in some for text in (each.text_a, each.text_b)]))
        rows = [(each, tokenizer.frame.row(next(ids), next(ids))) for each in some]
        return [_checked(row, max_tokens, each.where, mend="shorten the texts") for each, row in rows]

    results = in_similar_lengths(pairs, batch_size, encode=encode, compute=compute, count=count)
    return (ScoredPair(pair.text_a, pair.text_b, probability) for pair, probability in results)
