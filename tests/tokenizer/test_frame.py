"""Rows of at most so many tokens: what is dropped, and from where."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, processors

from bertcli.system.errors import UserError
from bertcli.tokenizer.frame import Frame, longest_first, read_frame

CLS, SEP = 2, 3
BERT = Frame((CLS,), (SEP,), (SEP,), two_segments=True)
ROBERTA = Frame((0,), (2, 2), (2,), two_segments=False)


def backend(post_processor: processors.PostProcessor | None) -> tokenizers.Tokenizer:
    """A tokenizer with ids 0 to 3 for `a` to `d`."""
    made = tokenizers.Tokenizer(models.WordLevel({letter: i for i, letter in enumerate("abcd")}, "a"))
    made.post_processor = post_processor
    return made


def template(single: str, pair: str) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[("c", 2), ("d", 3), ("a", 0)]
    )


@pytest.mark.parametrize(
    ("post_processor", "frame"),
    [
        (template("c $A d", "c $A:0 d:0 $B:1 d:1"), BERT),
        (processors.BertProcessing(("d", 3), ("c", 2)), BERT),
        (processors.RobertaProcessing(("c", 2), ("a", 0)), ROBERTA),
        (template("a a $A c", "a a $A d $B c"), Frame((0, 0), (3,), (2,), two_segments=False)),
        (None, None),
        (processors.ByteLevel(), None),
        (template("c $A d", "$A $B:1"), None),
    ],
)
def test_it_is_what_the_post_processor_says(
    post_processor: processors.PostProcessor | None, frame: Frame | None
):
    assert read_frame(backend(post_processor), "here") == frame


def test_it_makes_the_rows_that_the_tokenizer_makes():
    for processor in (
        template("c $A d", "c $A d $B:1 d:1"),
        processors.RobertaProcessing(("c", 2), ("a", 0)),
    ):
        made = backend(processor)
        frame = read_frame(made, "here")
        assert frame is not None
        pair, row = made.encode("b", "b"), frame.row([1], [1])
        assert (row.ids, row.length - row.second_starts) == (pair.ids, sum(pair.type_ids))
        assert frame.row([1]).ids == made.encode("b").ids


@pytest.mark.parametrize(
    "post_processor",
    [
        template("c $A d", "c $B:0 d $A d"),
        template("c $A d", "c $A $B d"),
        template("c $A d", "c $A d $B"),
        template("c $A d", "a $A d $B d"),
        template("c $A d", "c:1 $A d $B d"),
        template("c:1 $A d", "c $A d $B d"),
        processors.BertProcessing(("d", 3), ("c", 1)),
        processors.BertProcessing(("d", 3), ("[CLS]", 101)),
    ],
)
def test_rows_of_another_form_are_refused(post_processor: processors.PostProcessor):
    with pytest.raises(UserError, match=r"here: its post_processor makes rows that bertcli does not support"):
        read_frame(backend(post_processor), "here")


@pytest.mark.parametrize(
    ("a", "b", "max_length", "ids"),
    [
        ([7, 8], None, 4, [CLS, 7, 8, SEP]),
        ([7, 8, 9], None, 4, [CLS, 7, 8, SEP]),
        ([7, 8], [9], 6, [CLS, 7, 8, SEP, 9, SEP]),
        ([7, 8], [9], 5, [CLS, 7, SEP, 9, SEP]),
        ([7], [8, 9], 5, [CLS, 7, SEP, 8, SEP]),
        ([], [8, 9], 4, [CLS, SEP, 8, SEP]),
    ],
)
def test_a_text_and_a_pair(a: list[int], b: list[int] | None, max_length: int, ids: list[int]):
    row = BERT.fit(a, b, max_length)
    assert row.ids == ids
    assert row.second_starts == (len(ids) if b is None else ids.index(SEP) + 1)


def test_what_rows_cost_and_where_texts_stand_in_them():
    assert [(frame.cost(pair=False), frame.cost(pair=True)) for frame in (BERT, ROBERTA)] == [(2, 3), (2, 4)]
    row = ROBERTA.row([7, 8], [9])
    assert row.ids == [0, 7, 8, 2, 2, 9, 2]
    assert (row.ids[ROBERTA.a_starts], row.ids[ROBERTA.b_starts(2)], row.second_starts) == (7, 9, 7)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_a_pair_is_cut_as_the_tokenizers_library_cuts_it(a: int, b: int, room: int):
    made = backend(template("c $A d", "c $A d $B:1 d:1"))
    made.enable_truncation(room + 3, strategy="longest_first")
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    kept = made.encode("b " * a, "b " * b).sequence_ids
    assert longest_first(a, b, room) == (kept.count(0), kept.count(1))


@pytest.mark.parametrize(
    ("a", "b", "kept"), [(9, 1, (6, 1)), (1, 9, (1, 6)), (9, 5, (4, 3)), (5, 9, (3, 4)), (5, 5, (3, 4))]
)
def test_the_side_that_was_longer_keeps_the_odd_token(a: int, b: int, kept: tuple[int, int]):
    assert longest_first(a, b, 7) == kept
