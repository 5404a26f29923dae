"""What a report says of one pretraining run besides its log: the corpus, and what the model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bertcli.checks.findings import Finding, worst_first
from bertcli.checks.pretraining import check_pretraining
from bertcli.config.schema import PretrainConfig
from bertcli.hardware import resolve_device
from bertcli.hf.locate import resolve_model
from bertcli.model.replaced_tokens import ReplacedTokenModel
from bertcli.report.corpus import Facts, corpus_facts
from bertcli.report.filled import Filled, filled_sentences
from bertcli.report.missing import Missing
from bertcli.report.references import manifest_of
from bertcli.report.replaced import Suspect, replaced_sentences
from bertcli.report.run_view import RunView
from bertcli.report.wishes import Wishes
from bertcli.runs.objectives import Model, load_saved, predicts_words
from bertcli.store.matching import store_folder
from bertcli.store.token_store import OpenStore, open_store


@dataclass(frozen=True)
class PretrainingParts:
    """None, or nothing: that part is missing, and `Missing` says why.

    Attributes:
        findings: of `bertcli check-data`; None: nobody asked for them.
        heldout: whether the sentences are of held-out text.
    """

    corpus: Facts
    findings: Sequence[Finding] | None
    parameters: int | None
    heldout: bool
    filled: Sequence[Filled]
    replaced: Sequence[Sequence[Suspect]]


def pretraining_parts(view: RunView, wishes: Wishes, missing: Missing) -> PretrainingParts:
    """Compute them. Raises `UserError` for a missing device."""
    config, device = view.config, resolve_device(wishes.device)
    assert isinstance(config, PretrainConfig)
    manifest = manifest_of(config)
    store = missing.unless("the corpus and the examples", lambda: open_store(store_folder(config)))
    model = missing.unless("the examples", lambda: load_saved(config, resolve_model(view.root)))
    findings = None
    if wishes.check_data:
        found = missing.unless("the findings", lambda: check_pretraining(config, False, lambda line: None))
        findings = None if found is None else worst_first(found.findings)
    filled, replaced = _examples(model, store, device)
    return PretrainingParts(
        corpus=[] if manifest is None else corpus_facts(config, manifest),
        findings=findings,
        parameters=None if model is None else sum(each.numel() for each in model.parameters()),
        heldout=store is not None and store.heldout.num_documents > 0,
        filled=filled,
        replaced=replaced,
    )


def _examples(
    model: Model | None, store: OpenStore | None, device: torch.device
) -> tuple[Sequence[Filled], Sequence[Sequence[Suspect]]]:
    if model is None or store is None:
        return [], []
    filled = filled_sentences(predicts_words(model), store, device)
    is_rtd = isinstance(model, ReplacedTokenModel)
    return filled, replaced_sentences(model, store, device) if is_rtd else []
