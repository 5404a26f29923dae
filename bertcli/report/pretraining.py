"""What a report says of one pretraining run besides its log: the corpus, and what the model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.checks.findings import Finding, worst_first
from bertcli.checks.pretraining import check_pretraining
from bertcli.config.schema import PretrainConfig
from bertcli.evaluation.evaluate import Scores
from bertcli.hardware import resolve_device
from bertcli.hf.locate import resolve_model
from bertcli.model.architecture import Architecture
from bertcli.model.replaced_tokens import ReplacedTokenModel
from bertcli.owned.verdict import KeptVerdict
from bertcli.report.corpus import Facts, corpus_facts
from bertcli.report.masked_examples import MaskedExample, masked_examples
from bertcli.report.options import SMALL, Notes, ReportOptions
from bertcli.report.references import references_of
from bertcli.report.replaced_examples import ShownToken, replaced_examples
from bertcli.report.run_view import RunView
from bertcli.runs.metric_rows import term_key
from bertcli.runs.objectives import Model, load_saved, predicts_words
from bertcli.runs.pretraining_verdict import verdict
from bertcli.store.manifest import Manifest
from bertcli.store.matching import store_folder
from bertcli.store.token_store import open_store


@dataclass(frozen=True)
class PretrainingParts:
    """None, or nothing: that part is missing, and the notes say why.

    Attributes:
        verdict: what the run said at its end, or would have said.
        findings: of `bertcli check-data`; None: the corpus is large, and nobody asked for them.
        heldout: whether the sentences are of held-out text.
    """

    verdict: KeptVerdict | None
    corpus: Facts
    findings: Sequence[Finding] | None
    model: Model | None
    heldout: bool
    masked: Sequence[MaskedExample]
    replaced: Sequence[Sequence[ShownToken]]


def pretraining_parts(view: RunView, options: ReportOptions, notes: Notes) -> PretrainingParts:
    """Compute them. Raises `UserError` for a missing device."""
    config, device = view.config, resolve_device(options.device)
    assert isinstance(config, PretrainConfig)
    store = notes.unless_missing("the corpus and the examples", lambda: open_store(store_folder(config)))
    model = notes.unless_missing("the examples", lambda: load_saved(config, resolve_model(view.root)))
    findings = None
    if options.check_data or _is_small(view.manifest):
        found = notes.unless_missing(
            "the findings", lambda: check_pretraining(config, False, lambda line: None)
        )
        findings = None if found is None else worst_first(found.findings)
    masked, replaced = [], []
    if model is not None and store is not None:
        masked = masked_examples(predicts_words(model), store, device)
        replaced = replaced_examples(model, store, device) if isinstance(model, ReplacedTokenModel) else []
    return PretrainingParts(
        verdict=view.verdict or _verdict(view, config, model and model.architecture),
        corpus=[] if view.manifest is None else corpus_facts(config, view.manifest),
        findings=findings,
        model=model,
        heldout=store is not None and store.heldout.num_documents > 0,
        masked=masked,
        replaced=replaced,
    )


def _is_small(manifest: Manifest | None) -> bool:
    """Whether the text is known, and can be read again in seconds."""
    return manifest is not None and manifest.train.bytes + manifest.heldout.bytes <= SMALL


def _verdict(view: RunView, config: PretrainConfig, sizes: Architecture | None) -> KeptVerdict | None:
    """By the last evaluation, which must be that of the last step."""
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
