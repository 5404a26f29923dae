"""The parts of a report on a pretraining run: corpus, findings, masked words and replaced tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from bertcli.advice.check.findings import worst_first
from bertcli.advice.check.pretraining import check_pretraining
from bertcli.batches.batch import batch_of
from bertcli.config.run import PretrainRecipe
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.matching import store_folder
from bertcli.corpus.token_store import OpenStore, open_store
from bertcli.folders.locate import resolve_model
from bertcli.folders.run_layout import KeptVerdict
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import LanguageModel, PretrainingModel
from bertcli.objectives.learner import learner_of
from bertcli.reports.chart import spread
from bertcli.reports.head import Facts, corpus_facts
from bertcli.reports.page import SMALL, Notes, ReportOptions
from bertcli.reports.pretraining_verdict import verdict
from bertcli.reports.run_view import RunView
from bertcli.reports.scores import references_of
from bertcli.system.errors import Finding
from bertcli.system.hardware import resolve_device
from bertcli.system.terminal import ELLIPSIS
from bertcli.tokenizer.pieces import BLANK
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.heldout import MASK_RATE
from bertcli.training.metrics_log import term_key
from bertcli.training.scores import Scores

SENTENCES = 12
_LOOKED_AT = 400
_SHORTEST, _LONGEST = 8, 40
"""Fewest and most tokens of a sentence: enough context, and short enough to read."""
WORDS = 5
_SIDE = 200
"""Largest number of characters on either side of the mask."""
_LONG_WORD = 4
"""Least characters of a long word; shorter ones, mostly articles and commas, are masked if none is long."""


@dataclass(frozen=True)
class Guess:
    """A word that the model predicts for the mask. `right`: it is the word of the text."""

    word: str
    probability: float
    right: bool


@dataclass(frozen=True)
class MaskedExample:
    """A sentence around its mask. `rank`: the rank of the right word among all words, from 1."""

    before: str
    after: str
    right: str
    probability: float
    rank: int
    guesses: Sequence[Guess]


@torch.inference_mode()
def masked_examples(model: PretrainingModel, store: OpenStore, device: torch.device) -> list[MaskedExample]:
    """Up to `SENTENCES`, the same at every call."""
    tokenizer, generator = store.tokenizer, np.random.default_rng(0)
    chosen = [
        (ids, int(generator.choice(places)))
        for ids in some_sentences(store, model.architecture)
        if (places := _whole_words(ids, tokenizer))
    ]
    if not chosen:
        return []
    chosen = [chosen[i] for i in spread(len(chosen), SENTENCES)]
    masked = [[*ids[:at], tokenizer.mask_id, *ids[at + 1 :]] for ids, at in chosen]
    batch = batch_of(list(map(tokenizer.frame.row, masked)), tokenizer.pad_id, device)
    masked_M = (batch.ids_BT == tokenizer.mask_id).flatten().nonzero()[:, 0]
    model = model.to(device).eval()
    logits_MV = model(*batch, masked_M).mlm_logits_MV.float().cpu()
    probabilities_MV = logits_MV.softmax(-1)[:, : tokenizer.vocab_size]
    probabilities_MV[:, list(tokenizer.special_ids)] = 0  # special tokens are never in the text
    return [
        _example(tokenizer.decode(shown), ids[at], probabilities_V.numpy(), tokenizer=tokenizer)
        for (ids, at), shown, probabilities_V in zip(chosen, masked, probabilities_MV, strict=True)
    ]


def some_sentences(store: OpenStore, sizes: Architecture) -> Iterator[list[int]]:
    """The ids of sentences from all parts of the held-out text, or of the training text if none is held out.

    A model of these sizes can read each of them.
    """
    longest = min(_LONGEST, sizes.usable_positions - store.tokenizer.frame.cost(pair=False))
    side = store.heldout if store.heldout.num_documents else store.train
    for place in spread(side.num_sentences, _LOOKED_AT):
        start, end = int(side.sentences[place]), int(side.sentences[place + 1])
        if _SHORTEST <= end - start <= longest:
            yield np.asarray(side.ids[start:end]).astype(int).tolist()


def readable_piece(tokenizer: Tokenizer, token: int) -> str:
    """A piece for readers, without the sign for the blank before it."""
    return tokenizer.readable(token).removeprefix(BLANK)


def _example(text: str, right: int, probabilities_V: np.ndarray, tokenizer: Tokenizer) -> MaskedExample:
    """The example of a text with a mask, which stands for the token `right`."""
    before, _, after = text.partition(tokenizer.mask_token)
    return MaskedExample(
        before=before if len(before) <= _SIDE else ELLIPSIS + before[-_SIDE:],
        after=after if len(after) <= _SIDE else after[:_SIDE] + ELLIPSIS,
        right=readable_piece(tokenizer, right),
        probability=float(probabilities_V[right]),
        rank=1 + int((probabilities_V > probabilities_V[right]).sum()),
        guesses=[
            Guess(readable_piece(tokenizer, int(i)), float(probabilities_V[i]), right=int(i) == right)
            for i in islice(np.argsort(-probabilities_V), WORDS)
        ],
    )


def _whole_words(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The indices of words of one piece; if some are long, only those."""
    ends = [*(not tokenizer.continuation[i] for i in ids[1:]), True]
    whole = [
        at
        for at, (token, ends_here) in enumerate(zip(ids, ends, strict=True))
        if ends_here
        and not tokenizer.continuation[token]
        and token not in tokenizer.special_ids
        and readable_piece(tokenizer, token).isalpha()
    ]
    long = [at for at in whole if len(readable_piece(tokenizer, ids[at])) >= _LONG_WORD]
    return long or whole


@dataclass(frozen=True)
class ShownToken:
    """A token as the model saw it.

    Attributes:
        original: the token of the text in its place; None: the token itself.
        probability: the model's probability that the token was replaced.
    """

    text: str
    original: str | None
    probability: float

    @property
    def level(self) -> int:
        """The probability in tenths, for its shade."""
        return min(9, int(10 * self.probability))


@torch.inference_mode()
def replaced_examples(
    model: LanguageModel, store: OpenStore, device: torch.device
) -> list[Sequence[ShownToken]]:
    """Up to `SENTENCES`, the same at every call; each has at least one masked token."""
    tokenizer, random = store.tokenizer, np.random.default_rng(0)
    model, frame, shown = model.to(device).eval(), tokenizer.frame, []
    for ids in islice(some_sentences(store, model.architecture), SENTENCES):
        masked = np.sort(random.permutation(len(ids))[: max(1, round(MASK_RATE * len(ids)))])
        places = torch.tensor(masked + frame.a_starts, device=device)
        batch = batch_of([frame.row(ids)], tokenizer.pad_id, device)
        ids_BT = batch.ids_BT.clone()
        ids_BT[0, places] = tokenizer.mask_id
        draws = torch.tensor(random.random(len(masked)), device=device)
        output = model(ids_BT, batch.segments_BT, batch.mask_BT, places, draws)
        probabilities = output.rtd_logits_K.float().sigmoid().cpu()[frame.a_starts :].tolist()
        sampled = dict(zip(masked.tolist(), output.sampled_N.tolist(), strict=True))
        seen = [sampled.get(at, token) for at, token in enumerate(ids)]
        shown.append(
            [
                ShownToken(
                    readable_piece(tokenizer, token),
                    None if token == original else readable_piece(tokenizer, original),
                    probability,
                )
                for token, original, probability in zip(seen, ids, probabilities, strict=False)
            ]
        )
    return shown


@dataclass(frozen=True)
class PretrainingParts:
    """The parts of the report. None or empty: the part is missing, and the notes say why.

    Attributes:
        verdict: the verdict of the run at its end, or the one it would have.
        findings: the findings of `bertcli check-data`; None: the corpus is large, and nobody asked for them.
        heldout: True if the sentences are from held-out text.
    """

    verdict: KeptVerdict | None
    corpus: Facts
    findings: Sequence[Finding] | None
    model: LanguageModel | None
    heldout: bool
    masked: Sequence[MaskedExample]
    replaced: Sequence[Sequence[ShownToken]]


def pretraining_parts(view: RunView, options: ReportOptions, notes: Notes) -> PretrainingParts:
    """Compute the parts of the report. Raises `UserError` for a missing device."""
    config, device = view.config, resolve_device(options.device)
    assert isinstance(config, PretrainConfig)
    store = notes.unless_missing("the corpus and the examples", lambda: open_store(store_folder(config)))
    learner = learner_of(config.data.objective)
    model = notes.unless_missing("the examples", lambda: learner.load(resolve_model(view.root), config.model))
    findings, manifest = None, view.manifest
    if options.check_data or (manifest is not None and manifest.text.bytes <= SMALL):
        findings = notes.unless_missing(
            "the findings",
            lambda: worst_first(check_pretraining(config, False, lambda line: None).findings),
        )
    masked, replaced = [], []
    if model is not None and store is not None:
        masked = masked_examples(model.words, store, device)
        replaced = replaced_examples(model, store, device) if learner.objective.generates else []
    return PretrainingParts(
        verdict=view.verdict or _verdict(view, config, model and model.architecture),
        corpus=[] if manifest is None else corpus_facts(config, manifest),
        findings=findings,
        model=model,
        heldout=store is not None and store.heldout.num_documents > 0,
        masked=masked,
        replaced=replaced,
    )


def _verdict(view: RunView, config: PretrainRecipe, sizes: Architecture | None) -> KeptVerdict | None:
    """The verdict by the last evaluation; None: it is not the evaluation of the last step."""
    references, rows = references_of(view), view.split("heldout")
    if sizes is None or not references or not rows or rows[-1]["step"] < view.state.step:
        return None
    row = rows[-1]
    losses, accuracies = (
        {each.term: row[key] for each in references if row.get(key := term_key(each.term, what)) is not None}
        for what in ("loss", "accuracy")
    )
    if not any(each.predicts_words and each.term in losses for each in references):
        return None
    scores = Scores(losses, accuracies, 0, metrics=row)
    return KeptVerdict(view.state.step, [verdict(scores, references, config, sizes=sizes, rows=rows)])
