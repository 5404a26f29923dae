"""The objectives by name: whoever adds one writes its learner, and one entry here; nothing needs torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Literal


@dataclass(frozen=True)
class PairRule:
    """A rule for the two parts of a row, as data.

    Attributes:
        term: the name of its loss; empty for rows of one text.
        labels: the name of each label, by number; none for rows of one text.
        drawn_by: the function of `batches.pairs`: slots -> spans, with the arguments of `draw_pairs`.
        true_share: share of the pairs in which A and B are one running text.
        output: the name of the label's logits in an ONNX file, as in transformers.
    """

    term: str
    labels: tuple[str, ...]
    drawn_by: str
    true_share: float = 0.0
    output: str = ""

    @property
    def is_pair(self) -> bool:
        """True if a row has two segments and a label."""
        return bool(self.labels)

    @property
    def draw(self) -> Callable[..., Any]:
        """The function `drawn_by`."""
        return resolve_name(f"bertcli.batches.pairs:{self.drawn_by}")


ONE_TEXT = PairRule("", (), "draw_spans")
NEXT_SENTENCE = PairRule(
    "nsp", ("IsNext", "NotNext"), "draw_pairs", true_share=0.5, output="seq_relationship_logits"
)
"""Next sentence prediction (Devlin et al. 2019, section 3.1, task 2)."""
SENTENCE_ORDER = PairRule("sop", ("InOrder", "Swapped"), "draw_ordered", true_share=1.0, output="sop_logits")
"""Sentence order prediction (Lan et al. 2020, section 3.1)."""


ObjectiveName = Literal["mlm", "mlm+nsp", "mlm+sop", "rtd"]


@dataclass(frozen=True)
class Objective:
    """What a model learns from text alone.

    Attributes:
        name: the value of `data.objective`.
        kind: what the folder of its model holds, a key of `Family.classes`.
        pairs: the rule of its rows.
        learned_by: module and class of its `learner.Learner`, which is imported when it is first used,
            because it needs torch.
        generates: true if a generator replaces the masked words, and the model finds them: the folder then
            has another with the generator, and the model itself predicts no words.
        pipeline: the use of its model, as model hubs name it.
        keys: section and key of each entry of a config that only this objective reads.
    """

    name: ObjectiveName
    kind: str
    pairs: PairRule = ONE_TEXT
    learned_by: str = "bertcli.objectives.learner:Learner"
    generates: bool = False
    pipeline: str = "fill-mask"
    keys: tuple[tuple[str, str], ...] = ()


MLM = Objective("mlm", "masked-lm")
MLM_NSP = Objective("mlm+nsp", "pretraining", NEXT_SENTENCE)
MLM_SOP = Objective("mlm+sop", "pretraining", SENTENCE_ORDER)
RTD = Objective(
    name="rtd",
    kind="discriminator",
    learned_by="bertcli.objectives.replaced_tokens:ReplacementLearner",
    generates=True,
    pipeline="feature-extraction",
    keys=(("model", "generator"), ("training", "rtd_weight")),
)
OBJECTIVES = {each.name: each for each in (MLM, MLM_NSP, MLM_SOP, RTD)}
"""The value of `data.objective` -> the objective."""
