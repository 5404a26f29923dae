"""The form of a row: the special tokens around one text or two, and the segment ids.

The form is read from a tokenizer's file (its post-processor), so that `[CLS] A [SEP] B [SEP]` and
`<s> A </s></s> B </s>` differ only in data. No other file of bertcli knows the number of special tokens in a
row, or their places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import tokenizers
from tokenizers import models

from bertcli.system.errors import UserError


@dataclass(frozen=True, slots=True)
class Row:
    """One text or two with their special tokens: one sequence that the model reads.

    Attributes:
        second_starts: the place where segment 1 begins; the row's length if there is no segment 1.
    """

    ids: Sequence[int]
    second_starts: int

    @property
    def length(self) -> int:
        """The number of tokens in the row."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Frame:
    """The special tokens of rows: `prefix A suffix` for one text, `prefix A between B suffix` for a pair.

    Attributes:
        prefix, between, suffix: ids of special tokens, at least one each. The pooler reads the first token
            of a row.
        two_segments: true if B and the suffix after it are segment 1; all other tokens are segment 0.
    """

    prefix: tuple[int, ...]
    between: tuple[int, ...]
    suffix: tuple[int, ...]
    two_segments: bool

    @property
    def special_ids(self) -> set[int]:
        """The ids of all special tokens that rows hold."""
        return {*self.prefix, *self.between, *self.suffix}

    def cost(self, pair: bool) -> int:
        """The number of special tokens in a row."""
        return len(self.prefix) + len(self.suffix) + (len(self.between) if pair else 0)

    @property
    def a_starts(self) -> int:
        """The place of A's first token in a row."""
        return len(self.prefix)

    def b_starts(self, a_tokens: int) -> int:
        """The place of B's first token in the row of a pair."""
        return len(self.prefix) + a_tokens + len(self.between)

    def row(self, a: Sequence[int], b: Sequence[int] | None = None) -> Row:
        """The row of a text or of a pair, at full length."""
        if b is None:
            ids = [*self.prefix, *a, *self.suffix]
            return Row(ids, len(ids))
        ids = [*self.prefix, *a, *self.between, *b, *self.suffix]
        return Row(ids, self.b_starts(len(a)) if self.two_segments else len(ids))

    def fit(self, a: Sequence[int], b: Sequence[int] | None, max_length: int) -> Row:
        """The row, cut to at most `max_length` tokens, which must be at least the cost.

        A long text loses its last tokens; `longest_first` says how many each side of a pair keeps.
        """
        room = max_length - self.cost(b is not None)
        if b is None:
            return self.row(a[:room])
        kept_a, kept_b = longest_first(len(a), len(b), room)
        return self.row(a[:kept_a], b[:kept_b])


def read_frame(backend: tokenizers.Tokenizer, where: str) -> Frame | None:
    """The frame that the post-processor of `backend` puts around texts; None if it adds nothing to them.

    Raises `UserError` if the frame has another form, or holds tokens that are not in the vocabulary.
    """
    probe = tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    probe.post_processor = backend.post_processor
    single, pair = probe.encode("a"), probe.encode("a", "a")
    if None not in single.sequence_ids or None not in pair.sequence_ids:
        return None
    groups = [list(group) for _, group in groupby(range(len(pair)), key=pair.sequence_ids.__getitem__)]
    if [pair.sequence_ids[group[0]] for group in groups] == [None, 0, None, 1, None]:
        prefix, _, between, _, suffix = (tuple(pair.ids[i] for i in group) for group in groups)
        frame = Frame(prefix, between, suffix, two_segments=pair.type_ids[-1] == 1)
        row = frame.row([0], [0])
        special = zip(pair.sequence_ids, pair.tokens, pair.ids, strict=True)
        if (
            single.ids == frame.row([0]).ids
            and not any(single.type_ids)
            and pair.type_ids == [int(i >= row.second_starts) for i in range(row.length)]
            and all(backend.token_to_id(name) == i for owner, name, i in special if owner is None)
        ):
            return frame
    raise UserError(
        f"{where}: its post_processor makes rows that bertcli does not support: expected special tokens of "
        "the vocabulary before a text, after it and between two; before and after, the same for one and for "
        "two"
    )


def longest_first(a: int, b: int, room: int) -> tuple[int, int]:
    """The numbers of tokens that remain of `a` and `b` if both sides together may have `room` tokens.

    This is the rule `longest_first` of the tokenizers library, with which other programs cut the model's
    rows. The longer side is cut first. If both are cut, the longer one (in a tie, b) keeps the odd token.
    """
    if a + b <= room:
        return a, b
    shorter = min(a, b, room // 2)
    return (shorter, room - shorter) if a <= b else (room - shorter, shorter)
