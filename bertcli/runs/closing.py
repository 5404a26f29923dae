"""What a pretraining run says at its end besides its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from bertcli.config.schema import PretrainConfig
from bertcli.distributed import ranks
from bertcli.errors import UserError
from bertcli.evaluation.gain import Gain, Meter, gain_on_general
from bertcli.model.pretraining import PretrainingModel
from bertcli.runs.objectives import Model, predicts_words, words_alone, words_of
from bertcli.store.token_store import OpenStore


def closing_lines(
    config: PretrainConfig,
    source: Path | None,
    store: OpenStore,
    model: Model,
    weights: Mapping[str, Tensor],
    meter: Meter,
) -> Iterator[str]:
    """Lines for the log and the model card; computed on every rank.

    Args:
        source: the folder from which the run started.
        weights: the full ones of `model`.
    """
    if source is None and predicts_words(model).mask_decoder is None:
        return
    after, has_heldout = words_alone(model, weights), store.heldout.num_documents > 0
    if after.mask_decoder is not None and has_heldout:
        yield f"as transformers and predict-mask read the folder, {_without_decoder(after, store, meter)}"
    if source is None:
        return
    ratio = store.manifest.tokens_per_word
    try:
        before = ranks.on_all(lambda: words_of(config, source))
        if has_heldout:
            first = None if before is None else meter.nats_per_word(before, store.heldout, ratio)
            yield str(Gain("held-out text", first, meter.nats_per_word(after, store.heldout, ratio)))
        yield str(gain_on_general(meter, before, after, folder=source, corpus=config.corpus))
    except UserError as error:  # the trained model must not be lost for it
        yield f"what was gained and forgotten is not measured: {error}"


def _without_decoder(model: PretrainingModel, store: OpenStore, meter: Meter) -> str:
    decoder, model.mask_decoder = model.mask_decoder, None
    loss = meter.nats_per_word(model, store.heldout, 1.0)
    model.mask_decoder = decoder
    return f"without the enhanced mask decoder: held-out mlm {loss:.3f}"
