"""A pretrained model and any text -> the losses and accuracies of its objectives."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from bertcli.config.schema import CorpusConfig, DataConfig
from bertcli.data.pair_rules import PAIR_RULES
from bertcli.data.share import MicroBatch, Share
from bertcli.distributed import ranks
from bertcli.errors import UserError
from bertcli.evaluation.evaluate import evaluate
from bertcli.evaluation.heldout import HeldoutBatches
from bertcli.evaluation.run_reading import as_in_the_run
from bertcli.evaluation.text_store import text_store
from bertcli.hardware import resolve_precision
from bertcli.hf.folder import load_model_folder
from bertcli.hf.lengths import LongRows
from bertcli.inference.rows import only_numbers
from bertcli.store.fit import UNKNOWN, unknown
from bertcli.store.token_store import OpenStore
from bertcli.tasks.masked_language import MaskedLanguage
from bertcli.tasks.reference import perplexity
from bertcli.terminal import say
from bertcli.text.shown import look_at_lines
from bertcli.text.sources import find_sources


def measure_corpus(
    folder: Path,
    corpus: Mapping[str, Any],
    max_length: int | None,
    batch_size: int,
    batches: int | None,
    device: torch.device,
) -> dict[str, Any]:
    """Loss and accuracy of each term that the model has a head for, and the perplexity of words.

    Words are measured on rows that hold each token of the text once, pairs on drawn ones, with their number.
    `tokens`: of text, in the rows of words; `distinct_tokens` are as many. `unk_rate`: the share of the
    text's tokens that are unknown, which no score counts.

    Args:
        folder: a model folder (`hf.locate.resolve_model`).
        corpus: keys of `config.schema.CorpusConfig`; others come from the run that trained the model.
        max_length: tokens in a row; None: as the model was trained.
        batches: maximum number, a sample of the text; None: all of it.

    Raises:
        UserError: the model has no head for it; the corpus cannot be read.
    """
    loaded = load_model_folder(folder)
    if loaded.task is not None:
        raise UserError(
            f"{folder}: is fine-tuned for {loaded.task}; measure it on a labeled file: --data FILE"
        )
    if not loaded.report.has("mlm_head"):
        raise UserError(f"{folder}: has no masked-language-model head to evaluate; pretrain it first")
    corpus, max_length = as_in_the_run(folder, corpus, max_length, report=say)
    positions = loaded.model.architecture.usable_positions
    if max_length > positions:
        raise UserError(f"--max-length {max_length}: the model reads at most {positions} tokens")
    with tempfile.TemporaryDirectory() as scratch:
        store = text_store(folder, corpus, scratch, report=say)
        _show_as_read(store, CorpusConfig(**corpus))
        objective = "mlm" if loaded.model.pair_head is None else loaded.report.family.pair_objective
        data = DataConfig(objective=objective, max_length=max_length)
        stream = HeldoutBatches(
            store.train, loaded.tokenizer, data, batch_size=batch_size, at_most=batches, once=True
        )
        if stream.pairs is not PAIR_RULES[objective]:
            say("the text gives no sentence pairs: MLM alone")
        task = MaskedLanguage(stream.pairs)
        references = task.references(loaded.model.architecture, store.manifest.unigram_entropy, fresh=False)
        share = Share(math.ceil(batch_size / ranks.num_ranks()), ranks.rank(), ranks.num_ranks())
        long_rows = LongRows(folder)
        scores = evaluate(
            model=loaded.model.to(device),
            task=task,
            steps=_counted(stream.steps(share), long_rows),
            device=device,
            precision=resolve_precision("auto", device),
        )
        tokens, distinct = stream.count_tokens()
        say(f"mlm: {distinct:,} of the {store.train.num_tokens:,} tokens are read, each once")
        if stream.num_pairs:
            say(f"{stream.pairs.term}: measured apart, on {stream.num_pairs:,} drawn pairs")
    long_rows.rows, long_rows.long = map(int, ranks.add_up([long_rows.rows, long_rows.long]))
    long_rows.tell()
    measured: dict[str, Any] = {}
    only_numbers(torch.tensor([scores.losses[each.term] for each in references]))
    for each in references:
        measured[f"{each.term}_loss"] = scores.losses[each.term]
        if each.predicts_words:
            measured["perplexity"] = perplexity(scores.losses[each.term])
        measured[f"{each.term}_accuracy"] = scores.accuracies[each.term]
        if each.chance_accuracy is not None:
            measured[f"{each.term}_majority"] = each.chance_accuracy
            measured[f"{each.term}_pairs"] = stream.num_pairs
    measured |= {"tokens": tokens, "distinct_tokens": distinct, "unk_rate": store.manifest.unk_rate}
    return measured


def _show_as_read(store: OpenStore, corpus: CorpusConfig) -> None:
    """A line of the text as the model reads it. Raises `UserError` where all of it is unknown."""
    look, unk_rate = (
        look_at_lines(find_sources(corpus.files), corpus, store.tokenizer),
        store.manifest.unk_rate,
    )
    if unk_rate == 1.0:
        raise UserError(f"{unknown(unk_rate)}. Nothing can be measured; give text that the model can read")
    if look is not None:
        say(f"as written: {look.written}\nas read:    {look.read}")
    if unk_rate > UNKNOWN:
        say(f"warning: {unknown(unk_rate)}; the scores are those of the other tokens")


def _counted(steps: Iterable[list[MicroBatch]], long_rows: LongRows) -> Iterator[list[MicroBatch]]:
    for micro_batches in steps:
        for _, batch, is_dummy in micro_batches:
            if not is_dummy:
                long_rows.count(batch.lengths_B.tolist())
        yield micro_batches
