"""Several pretraining runs -> whether their losses can be compared, and the figure that can be."""

from __future__ import annotations

from collections.abc import Sequence

from bertcli.report.formatting import number
from bertcli.report.references import references_of
from bertcli.report.run_view import RunView
from bertcli.report.scores import Score, chosen_row
from bertcli.runs.metric_rows import term_key
from bertcli.store.manifest import Manifest

OTHER_TEXT = "The runs hold out different text, so their losses cannot be compared."
OTHER_TOKENS = (
    "The runs cut the same text into different tokens, so the losses of a masked token cannot be compared: "
    "with fewer and rarer tokens they are larger. Compare the nats a word: the loss times the tokens of a "
    "word."
)


def comparison_note(views: Sequence[RunView]) -> str | None:
    """What speaks against a comparison of the losses, as far as the stores are there; None: nothing."""
    manifests = [view.manifest for view in views if view.manifest is not None]
    if len({_heldout_text(each) for each in manifests}) > 1:
        return OTHER_TEXT
    return OTHER_TOKENS if len({_tokens(each) for each in manifests}) > 1 else None


def nats_per_word(view: RunView) -> Score | None:
    """As `evaluation.gain.Gain` has it; None: no store, or no evaluation."""
    row = chosen_row(view)
    terms = [each.term for each in references_of(view) if each.predicts_words]
    loss = row.get(term_key(terms[0], "loss")) if row and terms else None
    if loss is None or view.manifest is None:
        return None
    return Score("nats_per_word", "nats a word", number(loss * view.manifest.tokens_per_word))


def _heldout_text(manifest: Manifest) -> tuple[int, int]:
    return manifest.heldout.bytes, manifest.heldout.words


def _tokens(manifest: Manifest) -> tuple[object, ...]:
    """Equal where the text has the same tokens, whatever the ids and names of the special ones."""
    return manifest.train, manifest.heldout, round(manifest.unigram_entropy, 6)
