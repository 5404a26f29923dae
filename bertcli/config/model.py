"""The section of a pretraining config about the model, and the published sizes of BERT."""

from typing import Annotated, Generic, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from bertcli.config.section import AUTO, ByRecipe, LocalPath, Section, Tokens
from bertcli.families.family import FamilyName, Fresh, Sharing
from bertcli.families.registry import NEW

HEAD_SIZE = 64
"""Features of one attention head, in every published size."""

PRESETS: dict[str, tuple[int, int]] = {
    "tiny": (2, 128),
    "micro": (2, 256),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
"""Name -> (layers, hidden), from the smallest. Turc et al. 2019 published those up to medium; micro has no
name there. The other sizes follow: heads = hidden / 64, feed-forward = 4 x hidden
(modernbert 1.5 x)."""


class Sizes(NamedTuple):
    """The sizes of a model's layers."""

    layers: int
    hidden: int
    heads: int
    feed_forward: int


Layers = Annotated[int, Field(ge=1, le=1_000)]
Width = Annotated[int, Field(ge=1, le=2**20)]


class GeneratorConfig(Section):
    """The smaller model that replaces words, for `data.objective: rtd`."""

    layers: Layers | None = None
    """Number of the generator's layers. null: as many as the model has; half as many for deberta-v3."""
    width_share: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Hidden size and heads of the generator as a share of the model's, rounded to whole heads. null: a
    quarter; a third for electra of size base; all for deberta-v3."""
    sharing: Sharing | None = None
    """How embeddings are shared. tied: model and generator have the same ones. gradient-disentangled: the
    model's embeddings are the generator's plus a difference, and the model's loss trains only the difference
    (He et al. 2023). null: gradient-disentangled for deberta-v3, else tied."""


class ModelConfig(Section, Generic[ByRecipe]):
    """A preset, or the sizes one by one; a given size replaces that of the preset."""

    family: FamilyName | None = None
    """The model's family. null: bert, or the family of `init_from`."""
    preset: Literal["tiny", "micro", "mini", "small", "medium", "base", "large"] | None = "base"
    """A published size of BERT. null: all sizes are given one by one."""
    layers: Layers | None = None
    """Number of layers. null: the preset's."""
    hidden: Width | None = None
    """Hidden size: the features of a token in the layers. null: the preset's."""
    heads: Width | None = None
    """Number of attention heads. null: hidden / 64."""
    feed_forward: Width | None = None
    """Inner size of the feed-forward network. null: 4 x hidden; 1.5 x hidden for modernbert, whose network
    has gates."""
    max_positions: Tokens | None = None
    """Tokens in the longest row that the model can read. null: 512; 8,192 for modernbert. With `init_from` it
    may be more than the folder has: learned positions are then repeated (Beltagy et al. 2020, section 5)."""
    rotary_base: Annotated[float, Field(gt=1.0, le=1e9)] | None = None
    """Base of the rotary positions in the layers of modernbert that read full rows; larger for longer rows.
    null: 160,000, or that of `init_from`. ModernBERT learned with 10,000 on rows of 1,024 tokens, then with
    160,000 on rows of 8,192 (Warner et al. 2024, section 2.3)."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] | ByRecipe = AUTO
    """Dropout rate of hidden states and attention probabilities. auto: 0 in a run that is too short to
    overfit, else 0.1; always 0.1 with `init_from`."""
    initialization: Literal["neighbors", "published"] = "neighbors"
    """First weights of a new model. published: those of the family's authors, with a deviation of 0.02.
    neighbors: in families with a position table, the first layer looks at each token's neighbors from the
    first step on, positions begin as sines, and the weights of narrow models are larger."""
    generator: GeneratorConfig = GeneratorConfig()
    init_from: LocalPath | None = None
    """A model folder whose weights, sizes and tokenizer the run starts with; no key may contradict them, but
    `max_positions` may be larger."""

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

    def sizes(self, fresh: Fresh | None = None) -> Sizes:
        """The given sizes, else those of the preset.

        `fresh`: what the model's family decides, if it is not the config's family.
        """
        layers, hidden = PRESETS[self.preset or "base"]
        layers, hidden = self.layers or layers, self.hidden or hidden
        feed_forward = self.feed_forward or round((fresh or self.fresh).feed_forward * hidden)
        return Sizes(layers, hidden, self.heads or max(1, hidden // HEAD_SIZE), feed_forward=feed_forward)

    @property
    def fresh(self) -> Fresh:
        """What the family decides for a new model."""
        return NEW[self.family or "bert"]

    @property
    def positions(self) -> int:
        """`max_positions`, or the family's default."""
        return self.max_positions or self.fresh.max_positions
