"""The number behind an answer is the one that the answer was read from."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bertcli.batches.batch import batch_of
from bertcli.folders.task_folder import LoadedTask, load_task_folder
from bertcli.inference.attributions import Decision, decide, find_answer
from bertcli.inference.inputs import read_inputs
from bertcli.inference.predict import runner_of
from bertcli.system.errors import UserError
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import CPU, build_task
from bertcli.tasks.words import word_spans
from tests.folders.folders import LABELS, saved_task

TEXTS = {
    "classification": ["The cat sat.", "A dog."],
    "multi-label": ["The cats sat on the mat."],
    "regression": ["The cat.", "A dog ran in the dark."],
    "tokens": ["The cats sat on the mat. A dog ran in the dark house of night, and he sat in it."],
    "questions": ["Who sat?", "The cats sat on the mat. A dog ran in the dark house, and he sat in it."],
    "choices": ["It was", "dark", "he", "the night"],
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedTask]:
    folder = tmp_path_factory.mktemp("models")
    for kind in TEXTS:
        saved_task(folder / kind, kind, max_positions=128)
    return {kind: load_task_folder(folder / kind) for kind in TEXTS}


def example_of(loaded: LoadedTask, texts: list[str]) -> Example:
    return next(read_inputs(texts, None, loaded.settings, report=print))


def asked(models: dict[str, LoadedTask], kind: str, target: int | None = None, **settings: Any) -> Decision:
    loaded = models[kind]
    example = example_of(loaded, TEXTS[kind])
    changed = loaded.settings.model_copy(update=settings)
    return decide(runner_of(loaded, CPU, changed), example, target)


@torch.no_grad()
def output(loaded: LoadedTask, decision: Decision) -> torch.Tensor:
    row = decision.read.row
    segments_T = (torch.arange(row.length) >= row.second_starts).long()
    return loaded.model.eval()(torch.tensor([row.ids]), segments_T[None])


def test_of_a_label_it_is_its_logit(models: dict[str, LoadedTask]):
    for kind in ("classification", "multi-label"):
        loaded = models[kind]
        decision = asked(models, kind)
        logits_C = output(loaded, decision)[0]
        assert decision.answer == LABELS[kind][int(logits_C.argmax())]
        for target, label in enumerate(LABELS[kind]):
            decision = asked(models, kind, target)
            assert decision.answer == label
            assert decision.logit(output(loaded, decision)) == logits_C[target]


@pytest.mark.parametrize("kind", ["multi-label", "regression"])
def test_of_a_long_text_it_is_that_of_the_window_where_it_is_highest(
    models: dict[str, LoadedTask], kind: str
):
    loaded = models[kind]
    settings = loaded.settings.model_copy(
        update={"max_length": 16, "doc_stride": 4, "windows": "max", "text": "text"}
    )
    text = "The cats sat on the mat. A dog ran in the dark house of night, and he sat in it. " * 2
    example = next(read_inputs([text], None, settings, report=print))
    decision = decide(runner_of(loaded, CPU, settings), example)
    (item,) = build_task(settings, loaded.labels).encode([example], loaded.tokenizer)
    with torch.no_grad():
        logits = [float(decision.logit(loaded.model(*batch_of([row], 0, CPU)))) for row in item.rows]
    assert list(decision.read.row.ids) == list(item.rows[logits.index(max(logits))].ids)
    words = [word.text for word in decision.read.words]
    assert " ".join(words) in " ".join(text[start:end] for start, end in word_spans(text))


def test_of_a_value_it_is_the_value(models: dict[str, LoadedTask]):
    decision = asked(models, "regression")
    value = float(decision.logit(output(models["regression"], decision)))
    assert decision.answer == f"{value:.4f}"


def test_of_a_probability_it_is_the_logit(models: dict[str, LoadedTask]):
    decision = asked(models, "regression", sigmoid=True)
    logit = decision.logit(output(models["regression"], decision))
    assert decision.answer == f"{float(logit.sigmoid()):.4f}"


def test_of_a_choice_it_is_the_logit_of_its_row(models: dict[str, LoadedTask]):
    values = []
    for target, choice in enumerate(TEXTS["choices"][1:]):
        decision = asked(models, "choices", target)
        assert decision.answer == choice
        assert [word.text for word in decision.read.words if word.segment == 1] == choice.split()
        values.append(float(decision.logit(output(models["choices"], decision))))
    assert asked(models, "choices").answer == TEXTS["choices"][1:][values.index(max(values))]


@pytest.mark.parametrize("length", [16, 128])
def test_of_a_word_it_is_the_logit_of_its_tag(models: dict[str, LoadedTask], length: int):
    loaded = models["tokens"]
    words = runner_of(loaded, CPU).task.answer_names(example_of(loaded, TEXTS["tokens"]))
    assert words[:4] == ("The", "cats", "sat", "on")
    outside = {}
    for target, word in enumerate(words):
        decision = asked(models, "tokens", target, max_length=length, doc_stride=8)
        logits_BTC = output(loaded, decision)
        (place,) = (
            each.tokens.start
            for each in decision.read.words
            if each.text == word and logits_BTC[0, each.tokens.start].max() == decision.logit(logits_BTC)
        )
        tag = int(logits_BTC[0, place].argmax())
        assert decision.answer == f"{LABELS['tokens'][tag]} ({word})"
        outside[decision.answer] = float(logits_BTC[0, place].softmax(dim=-1)[0])
    assert asked(models, "tokens", max_length=length, doc_stride=8).answer == min(
        outside, key=lambda answer: outside[answer]
    )


@pytest.mark.parametrize("length", [16, 128])
def test_of_a_span_it_is_the_sum_of_its_ends(models: dict[str, LoadedTask], length: int):
    loaded = models["questions"]
    decision = asked(models, "questions", max_length=length, doc_stride=4)
    assert decision.answer in TEXTS["questions"][1]
    logits_BT2 = output(loaded, decision)
    ends = [
        (first, last)
        for first in range(decision.read.row.length)
        for last in range(first, decision.read.row.length)
        if torch.equal(logits_BT2[:, first, 0] + logits_BT2[:, last, 1], decision.logit(logits_BT2))
    ]
    (found,) = ends
    inside = [
        word.text for word in decision.read.words if set(word.tokens) & set(range(found[0], found[1] + 1))
    ]
    assert "".join(inside) == decision.answer.replace(" ", "")


def test_of_no_answer_it_is_the_sum_at_the_first_token(models: dict[str, LoadedTask]):
    decision = asked(models, "questions", null_threshold=-1e9)
    logits_BT2 = output(models["questions"], decision)
    assert decision.answer == "no answer in the text"
    assert decision.logit(logits_BT2) == logits_BT2[:, 0].sum()


def test_an_answer_that_is_not_there_is_an_error(models: dict[str, LoadedTask]):
    for kind, number in (("classification", 3), ("choices", 3), ("regression", 0), ("questions", 0)):
        with pytest.raises(UserError, match=f"there is no answer {number} to explain"):
            asked(models, kind, number)
    loaded = models["tokens"]
    with pytest.raises(UserError, match="the text has no token to be tagged by"):
        decide(runner_of(loaded, CPU), example_of(loaded, ["\x01"]))


def test_answers_are_found_by_text_or_number():
    names = ("spam", "ham", "1")
    assert [find_answer(names, name) for name in ("spam", "ham", "1", "0")] == [0, 1, 2, 0]
    with pytest.raises(UserError, match=r"--target eggs: give one of these, .*: 0 spam, 1 ham, 2 1$"):
        find_answer(names, "eggs")
    with pytest.raises(UserError, match="--target the: 2 have this text; give a number: 0, 2"):
        find_answer(("the", "cat", "the"), "the")
    with pytest.raises(UserError, match="has one answer alone; leave it out"):
        find_answer((), "1")
    with pytest.raises(UserError, match=r"11 x, \.\.\. 29$"):
        find_answer(("x",) * 30, "y")
