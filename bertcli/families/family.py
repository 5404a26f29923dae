"""The facts in which the folders of families differ; `folders/` has the algorithms."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bertcli.objectives.registry import MLM, Objective

Keys = Mapping[str, Any]
"""The keys of a `config.json`."""
Spellings = tuple[tuple[str, str], ...]
"""Regular expressions and their replacements, applied one after the other."""

HeadKind = Literal["sequences", "tokens", "spans", "choices"]
"""What a task's head gives: logits of a row; of each token; of the start and the end of an answer; one logit
for each row of a question with choices."""
PARTS = {
    "pooler": "pooler",
    "mlm_head": "masked-language-model head",
    "rtd_head": "replaced-token head",
    "pair_head": "next-sentence head",
    "classifier": "task head",
    "qa_outputs": "task head",
}
"""Our modules that a folder may lack -> their names in messages."""
LARGEST_SIZE = 1 << 24
"""The upper limit of every size: a larger model could not be built, not even without values."""


@dataclass(frozen=True)
class Head:
    """The layers between the body and the outputs of a task: [dense, activation, norm,] dropout, output.

    Attributes:
        output: name of the last dense layer in a folder.
        dense: name of the dense layer before it; None: there is none.
        activation: the function after `dense`.
        norm: name of the LayerNorm after the activation; None: there is none.
        dense_dropout, dropout: the field of `Architecture` with the rate before `dense`, and before `output`;
            None: no dropout.
    """

    output: str
    dense: str | None = None
    activation: Literal["tanh", "gelu", "relu"] = "tanh"
    norm: str | None = None
    dense_dropout: str | None = None
    dropout: str | None = "head_dropout"

    def tensors(self) -> dict[str, str]:
        """Our modules -> their names in a folder."""
        names = {"pooler.dense": self.dense, "pooler.norm": self.norm}
        names |= {"classifier": self.output, "qa_outputs": self.output}
        return {ours: theirs for ours, theirs in names.items() if theirs is not None}


@dataclass(frozen=True)
class Fused:
    """Several of our dense layers that a folder holds as one.

    Attributes:
        name: regular expression of the folder's layer.
        parts: names of our layers, as they follow `name` and a dot in `Family.tensors`.
        by_head: true if the rows are those of all parts for head 0, then for head 1 ...; else part after
            part.
    """

    name: str
    parts: tuple[str, ...]
    by_head: bool


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        model_type: its name in `config.json`.
        name: its name in messages.
        sizes, rates: field of `Architecture` -> key of `config.json`, and its default. Sizes are integers
            above 0 (default None: the key is required), rates numbers from 0 to below 1 (None: may be null).
        choices: field of `Architecture` -> key, and its values -> ours; the first is the default.
        parts: field of `Architecture` -> its value in every model of the family; it has no key.
        derive: the full `config.json` -> further fields of `Architecture`; raises `ValueError` that names the
            key.
        keys: an `Architecture` -> the keys that `derive` reads.
        fixed: key -> the allowed values; another value would be another model.
        written: keys that are written, and only checked on reading, besides `tie_word_embeddings`.
        objectives: those for which it has heads; a new model learns the last one.
        model_keys: keys of the config's section `model` that other families do not have.
        row_keys: keys that are written with the id of a row's first token, and those with its last.
        tensors: our module or parameter -> its name in a folder; `{}` is the number of a layer.
        fused: layers that a folder holds as one.
        prefix: prefix of the names of the body, except in a folder that holds only the encoder.
        tied_decoder: name of the copy of the word embeddings that many folders hold.
        old_spellings: names in older folders -> those of `tensors`.
        buffers: regular expression of names in a folder that no model uses.
        unused_heads: regular expression of heads that bertcli does not have.
        heads: the heads of tasks by `HeadKind`; transformers has no class for any other, which is refused.
        classes: what a folder holds, or the kind of its head -> the class of transformers that loads it.
        tensorflow: names in checkpoints of the authors' own code -> those of `tensors`.
    """

    model_type: str
    name: str
    sizes: Mapping[str, tuple[str, int | None]]
    rates: Mapping[str, tuple[str, float | None]]
    fixed: Mapping[str, tuple[Any, ...]]
    written: Keys
    tensors: Mapping[str, str]
    prefix: str
    tied_decoder: str
    heads: Mapping[str, Head]
    classes: Mapping[str, str]
    choices: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)
    derive: Callable[[Keys], Keys] = lambda config: {}
    keys: Callable[[Any], Keys] = lambda architecture: {}
    objectives: tuple[Objective, ...] = (MLM,)
    model_keys: tuple[str, ...] = ()
    row_keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    fused: Fused | None = None
    old_spellings: Spellings = ()
    buffers: str = r"(.+\.)?embeddings\.(position_ids|token_type_ids)"  # 0, 1, 2 ... and zeros
    unused_heads: str | None = None
    tensorflow: Spellings = ()

    @property
    def a_name(self) -> str:
        """The name with its article."""
        return f"{'an' if self.name[0] in 'AE' else 'a'} {self.name}"

    @property
    def pair_objective(self) -> Objective | None:
        """The objective that the pair head is for; None if there is no pair head."""
        return next((each for each in self.objectives if each.pairs.is_pair), None)

    def names(self, kind: str | None = None) -> dict[str, str]:
        """`tensors`, and the names of the head, if `kind` is one of `heads`."""
        head = self.heads.get(kind or "")
        return {**self.tensors, **(head.tensors() if head else {})}

    def head_names(self) -> set[str]:
        """Names of all modules that are not in the body, with any head."""
        tables = [self.tensors, *(head.tensors() for head in self.heads.values())]
        return {theirs for table in tables for ours, theirs in table.items() if not ours.startswith("body.")}

    @property
    def bare_prefix(self) -> str:
        """Regular expression of the beginning of a name in a folder that holds only the encoder."""
        inside = {
            name.removeprefix(self.prefix).split(".")[0]
            for name in self.tensors.values()
            if name.startswith(self.prefix)
        }
        return rf"^(?=({'|'.join(map(re.escape, sorted(inside)))})\.)"


def task_heads(
    sequences: Head,
    tokens: Head = Head("classifier"),
    spans: Head = Head("qa_outputs", dropout=None),
    choices: Head | None = None,
) -> dict[str, Head]:
    """The heads by kind. `choices`: None: the same as `sequences`."""
    return {"sequences": sequences, "tokens": tokens, "spans": spans, "choices": choices or sequences}


_CLASSES = {
    "encoder": "Model",
    "masked-lm": "ForMaskedLM",
    "sequences": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "spans": "ForQuestionAnswering",
    "choices": "ForMultipleChoice",
    "pretraining": "ForPreTraining",
    "pairs": "ForNextSentencePrediction",
}


def class_names(family: str, *more: str) -> dict[str, str]:
    """The classes of transformers, which begin with `family`, by what a folder holds.

    `more`: "pretraining" and "pairs", which few families have.
    """
    kinds = ("encoder", "masked-lm", "sequences", "tokens", "spans", "choices", *more)
    return {kind: f"{family}{_CLASSES[kind]}" for kind in kinds}


def integer_key(config: Keys, key: str, default: int | None = None, above: int | None = None) -> int:
    """The integer of a key. Raises `ValueError` for another value, and for one that is not `above` this limit
    or is larger than `LARGEST_SIZE`."""
    value = config.get(key, default)
    if type(value) is not int or (above is not None and value <= above):
        limit = "" if above is None else f" above {above}"
        raise ValueError(f"{key}: {value!r} is not an integer{limit}")
    if value > LARGEST_SIZE:
        raise ValueError(f"{key}: {value} is too large; at most {LARGEST_SIZE:,} is supported")
    return value


def attention_names(prefix: str, *theirs: str) -> dict[str, str]:
    """Our query, key, value and, if a fourth name is given, output of a layer -> `prefix` and `theirs`.

    Raises `ValueError` for another number of names.
    """
    ours = ("query", "key", "value", "output")[: max(3, len(theirs))]
    pairs = zip(ours, theirs, strict=True)
    return {f"body.encoder.layers.{{}}.attention.{own}": f"{prefix}{name}" for own, name in pairs}


def bert_layers(prefix: str) -> dict[str, str]:
    """Our modules of a body -> their names, which are BERT's after `prefix`."""
    layer = f"{prefix}encoder.layer.{{}}."
    return {
        "body.embeddings.word": f"{prefix}embeddings.word_embeddings",
        "body.embeddings.position": f"{prefix}embeddings.position_embeddings",
        "body.embeddings.segment": f"{prefix}embeddings.token_type_embeddings",
        "body.embeddings.norm": f"{prefix}embeddings.LayerNorm",
        **attention_names(f"{layer}attention.", "self.query", "self.key", "self.value", "output.dense"),
        "body.encoder.layers.{}.attention_norm": f"{layer}attention.output.LayerNorm",
        "body.encoder.layers.{}.feed_forward.expand": f"{layer}intermediate.dense",
        "body.encoder.layers.{}.feed_forward.contract": f"{layer}output.dense",
        "body.encoder.layers.{}.feed_forward_norm": f"{layer}output.LayerNorm",
    }


FamilyName = Literal[
    "bert", "roberta", "albert", "distilbert", "electra", "deberta", "deberta-v3", "modernbert"
]
TokenizerKind = Literal["wordpiece", "byte-bpe", "unigram"]


Sharing = Literal["tied", "gradient-disentangled"]


@dataclass(frozen=True)
class Generator:
    """The generator: the model that replaces words, beside the discriminator, which finds them.

    It is described in Clark et al. 2020, section 3.2.

    Attributes:
        layers_share, width_share: its layers and its hidden size, as shares of the discriminator's.
        sharing: `tied`: both have the same embeddings. `gradient-disentangled`: the discriminator's are the
            generator's plus a difference, and its loss trains only that (He et al. 2023, section 3.2).
    """

    layers_share: float = 1.0
    width_share: float = 0.25
    sharing: Sharing = "tied"


@dataclass(frozen=True)
class Fresh:
    """A new model of a family, before its first step.

    Attributes:
        family: the family of the folder that is written.
        tokenizer: the kind of vocabulary that is trained for it.
        lowercase: true if that vocabulary is in lower case.
        mask_rate: share of the tokens to predict; None: the recipe's.
        mask_split: shares of these tokens, with rtd, that become the mask, become a random token, and stay.
        generator: hidden size -> the generator for rtd; None: the family does not learn rtd.
        max_positions: tokens in the longest row that the model can read.
        rate: the best learning rate, as a multiple of that of a BERT of the same size.
        feed_forward: inner features of the feed-forward network for each hidden one.
        keys: hidden size and `max_positions` -> the keys of `config.json`, besides sizes and dropout, that
            differ from the family's defaults.
    """

    family: Family
    tokenizer: TokenizerKind
    lowercase: bool
    mask_rate: float | None = None
    mask_split: tuple[float, float, float] = (0.8, 0.1, 0.1)
    generator: Callable[[int], Generator] | None = None
    max_positions: int = 512
    rate: float = 1.0
    feed_forward: float = 4.0
    keys: Callable[[int, int], Keys] = lambda hidden, max_positions: {}

    @property
    def objective(self) -> Objective:
        """What the model learns, unless a config says otherwise."""
        return self.family.objectives[-1]
