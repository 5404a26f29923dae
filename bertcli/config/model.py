"""The section of a pretraining config about the model, and the published sizes of BERT."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertcli.config.section import AUTO, Decided, FilePath, Section, Tokens
from bertcli.families.family import FamilyName, Fresh, Sharing
from bertcli.families.registry import NEW

HEAD_SIZE = 64
"""Features of one attention head, in every published size."""

PRESETS: dict[str, tuple[int, int]] = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
"""Name -> (layers, hidden). The other sizes follow: heads = hidden / 64, feed-forward = 4 x hidden
(modernbert 1.5 x)."""


Layers = Annotated[int, Field(ge=1, le=1_000)]
Width = Annotated[int, Field(ge=1, le=2**20)]


class GeneratorConfig(Section):
    """The smaller model that replaces words, for `data.objective: rtd`."""

    layers: Layers | None = None
    """null: as many as the model; deberta-v3 half of them."""
    width_share: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Of the model's hidden size and heads, rounded to whole heads. null: a quarter; base of electra a third;
    deberta-v3 all."""
    sharing: Sharing | None = None
    """tied: both have the same embeddings; gradient-disentangled: the model's are the generator's, of which
    only the generator learns, and a difference (He et al. 2023). null: that for deberta-v3, else tied."""


class ModelConfig(Section):
    """A preset, or the sizes one by one; a given size replaces that of the preset."""

    family: FamilyName | None = None
    """null: bert, or that of `init_from`."""
    preset: Literal["tiny", "mini", "small", "medium", "base", "large"] | None = "base"
    """null: all sizes are given one by one."""
    layers: Layers | None = None
    """null: the preset's."""
    hidden: Width | None = None
    """Features of a token in the layers. null: the preset's."""
    heads: Width | None = None
    """null: hidden / 64."""
    feed_forward: Width | None = None
    """null: 4 x hidden; modernbert, whose network has gates, 1.5 x hidden."""
    max_positions: Tokens | None = None
    """Tokens in the longest row that the model can read. null: 512; modernbert 8,192."""
    dropout: Decided[float, Field(ge=0.0, lt=1.0)] = AUTO
    """Of hidden states and of attention probabilities. auto: 0 in a run that is too short to overfit, else
    0.1, as with `init_from`."""
    generator: GeneratorConfig = GeneratorConfig()
    init_from: FilePath | None = None
    """A model folder: the run starts with its weights, sizes and tokenizer; no key may contradict them."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.preset is None and None in (self.layers, self.hidden) and self.init_from is None:
            raise ValueError("preset: null needs layers and hidden")
        if self.init_from is not None and (self.generator.layers or self.generator.width_share):
            raise ValueError("generator: init_from sets its layers and width_share; leave them out")
        _, hidden, heads, _ = self.sizes()
        if hidden % heads and self.init_from is None:
            raise ValueError(f"heads must divide hidden: {hidden} / {heads} leaves {hidden % heads}")
        return self

    def sizes(self, fresh: Fresh | None = None) -> tuple[int, int, int, int]:
        """(layers, hidden, heads, feed_forward): the given sizes, else those of the preset; `fresh`: of the
        family, if that is not the config's."""
        layers, hidden = PRESETS[self.preset or "base"]
        layers, hidden = self.layers or layers, self.hidden or hidden
        feed_forward = self.feed_forward or round((fresh or self.fresh).feed_forward * hidden)
        return layers, hidden, self.heads or max(1, hidden // HEAD_SIZE), feed_forward

    @property
    def fresh(self) -> Fresh:
        """What the family decides for a new model."""
        return NEW[self.family or "bert"]

    @property
    def positions(self) -> int:
        """`max_positions`, or the family's."""
        return self.max_positions or self.fresh.max_positions
