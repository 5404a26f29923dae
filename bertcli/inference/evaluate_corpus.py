"""A model and text -> loss and accuracy; by default the text is read as in the model's own run."""

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bertcli.batches.share import MicroBatch, Share
from bertcli.config.corpus import CorpusConfig
from bertcli.config.load import load_config
from bertcli.config.schema import DataConfig, PretrainConfig, TrainingConfig
from bertcli.corpus.files import corpus_files
from bertcli.corpus.finish import UNKNOWN, unknown
from bertcli.corpus.shown import look_at_lines
from bertcli.corpus.token_store import OpenStore
from bertcli.folders.config_file import read_architecture
from bertcli.folders.lengths import LongRows, trained_length
from bertcli.folders.model_folder import load_model_folder
from bertcli.folders.run_layout import RunLayout, run_of_model
from bertcli.inference.predict import only_numbers
from bertcli.objectives.base import perplexity
from bertcli.objectives.learner import learner_of
from bertcli.objectives.registry import MLM
from bertcli.samples import SAMPLES
from bertcli.system.errors import UserError
from bertcli.system.hardware import resolve_precision
from bertcli.system.terminal import say
from bertcli.training import ranks
from bertcli.training.heldout import MASK_RATE, HeldoutBatches, as_in_bert, text_store
from bertcli.training.scores import evaluate

_LAYOUT = ("format", "text_key", "encoding", "document", "join_lines")
"""The keys of a corpus that describe the layout of its files."""


def as_in_the_run(
    folder: Path, given: Mapping[str, Any], max_length: int | None
) -> tuple[dict[str, Any], int]:
    """The user's values, with others from the run that trained the model; the latter are said.

    Args:
        folder: a model folder: a run's `model/`, one of its checkpoints', or any other.
        given: keys of `config.corpus.CorpusConfig`, with `files`.
        max_length: tokens in a row; None: as the model was trained.

    Returns:
        The keys of the corpus, and the number of tokens in a row.
    """
    corpus = dict(given)
    config = _run_config(folder)
    if config is not None:
        path, run = config
        adopted = _missing(given, run.corpus)
        corpus |= adopted
        shown = [f"{key} {value}" for key, value in adopted.items() if _matters(key, corpus)]
        if shown:
            say(f"reading: {', '.join(shown)}, as in {path}")
    if max_length is None:
        trained = trained_length(folder)
        positions = read_architecture(folder / "config.json").usable_positions
        source = f", the training length in {folder / 'tokenizer_config.json'}"
        if trained is None:
            source = "; the model's training length is unknown (--max-length)"
        max_length = min(trained or DataConfig().max_length, positions)
        say(f"reading: rows of {max_length} tokens{source}")
    return corpus, max_length


def _run_config(folder: Path) -> tuple[Path, PretrainConfig] | None:
    """The config of the pretraining run that `folder` belongs to, with its path; None if there is none."""
    run = run_of_model(folder)
    if run is None or not (path := RunLayout(run).config).is_file():
        return None
    try:
        return path, load_config(PretrainConfig, path)
    except UserError:
        say(f"note: {path} is not the config of a pretraining run, and is ignored")
        return None


def _missing(given: Mapping[str, Any], run: CorpusConfig) -> dict[str, Any]:
    """The run's values of keys that were not given, if they match those that were."""
    keys: Sequence[str] = ("language", *_LAYOUT)
    if all(name in SAMPLES and not Path(name).exists() for name in given["files"]):
        keys = ("language",)
    elif given.get("format", run.format) != run.format:
        keys = ("language", "text_key", "encoding")
    elif given.get("document", run.document) != run.document:
        keys = ("language", "format", "text_key", "encoding")
    return {key: getattr(run, key) for key in keys if key not in given}


def _matters(key: str, corpus: Mapping[str, Any]) -> bool:
    """True if a key has an effect; `corpus` is not checked yet."""
    if key == "text_key":
        return corpus["format"] in ("jsonl", "parquet")
    if key == "document":
        return corpus["format"] == "text"
    return key != "join_lines" or bool(corpus["join_lines"])


def measure_corpus(
    folder: Path,
    corpus: Mapping[str, Any],
    max_length: int | None,
    batch_size: int,
    batches: int | None,
    device: torch.device,
) -> dict[str, Any]:
    """Loss and accuracy of each term that the model has a head for, and the perplexity of words.

    Words are measured on rows that hold each token of the text once, and sentence pairs on drawn ones, whose
    number is given. `tokens` is the number of the text's tokens in the rows of words, and `distinct_tokens`
    is the same number. `unk_rate` is the share of the text's tokens that are unknown, which no score counts.

    Args:
        folder: a model folder (`folders.locate.resolve_model`).
        corpus: keys of `config.corpus.CorpusConfig`; others come from the run that trained the model.
        max_length: tokens in a row; None: as the model was trained.
        batches: most batches to read, a sample of the text; None: all of the text.

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
    corpus, max_length = as_in_the_run(folder, corpus, max_length)
    positions = loaded.model.architecture.usable_positions
    if max_length > positions:
        raise UserError(f"--max-length {max_length}: the model reads at most {positions} tokens")
    with tempfile.TemporaryDirectory() as scratch:
        store = text_store(folder, corpus, scratch, report=say)
        _show_as_read(store, CorpusConfig(**corpus))
        objective = loaded.objective
        data = as_in_bert(objective, max_length)
        stream = HeldoutBatches(
            store.train, loaded.tokenizer, data, batch_size=batch_size, at_most=batches, once=True
        )
        if stream.pairs is not objective.pairs:
            say("the text gives no sentence pairs: MLM alone")
            objective = MLM
        learner, entropy = learner_of(objective.name), store.manifest.unigram_entropy
        references = learner.references(loaded.model.architecture, entropy, fresh=False, mask_rate=MASK_RATE)
        share = Share(math.ceil(batch_size / ranks.num_ranks()), ranks.rank(), ranks.num_ranks())
        long_rows = LongRows(folder)
        task = learner.task(TrainingConfig())
        steps = _counted(stream.steps(share), long_rows)
        precision = resolve_precision("auto", device)
        scores = evaluate(loaded.model.to(device), task, steps, device=device, precision=precision)
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
    """Say a line of the text as written and as the model reads it. Raises `UserError` if all is unknown."""
    look = look_at_lines(corpus_files(corpus), corpus, store.tokenizer)
    unk_rate = store.manifest.unk_rate
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
