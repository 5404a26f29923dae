"""The rows to label next: the most uncertain ones, of which no two are alike, far from each other."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from bertcli.config.task import TaskSettings
from bertcli.folders.lengths import LongRows
from bertcli.folders.task_folder import load_task_folder
from bertcli.inference.predict import Predicted, predict_stream, runner_of
from bertcli.inference.suggest import ALIKE, Candidates, Suggested, are_alike, choose, suggest, without_labels
from bertcli.model.task_models import HeadModel, pool
from bertcli.system.errors import UserError
from bertcli.system.terminal import counted
from bertcli.tasks.classification import Classified
from bertcli.tasks.entities import Tagged
from bertcli.tasks.examples import Example, TextExample
from bertcli.tasks.regression import Value
from bertcli.tasks.shown import nearness
from bertcli.tasks.words import running_text

CPU = torch.device("cpu")
EXAMPLE = TextExample("here", {}, ("text",), None)


def row(uncertainty: float, tokens: set[int], vector: tuple[float, ...] = (1.0,)) -> Suggested:
    answer = Predicted(EXAMPLE, Value(0.0), ())
    return Suggested(answer, uncertainty, np.array(vector, np.float32), frozenset(tokens))


def example(text: str) -> Example:
    return TextExample("here", {"text": text}, (text,), None)


def hooks(model: nn.Module) -> list[object]:
    return [hook for module in model.modules() for hook in module._forward_pre_hooks.values()]


sets = st.frozensets(st.integers(0, 12), min_size=1, max_size=9)


@given(st.lists(st.tuples(st.floats(0, 1), sets), max_size=40), st.integers(1, 6))
def test_no_two_candidates_are_alike_and_the_surest_go(rows: list, size: int):
    candidates = Candidates(size)
    for uncertainty, tokens in rows:
        candidates.add(row(uncertainty, tokens))
        assert len(candidates._kept) < 2 * size
    best = candidates.best()
    assert len(best) <= size
    assert best == sorted(best, key=lambda each: -each.uncertainty)
    for one, other in itertools.combinations(best, 2):
        shared, all_tokens = len(one.tokens & other.tokens), len(one.tokens | other.tokens)
        assert shared < ALIKE * all_tokens
    if rows:
        assert best[0].uncertainty == max(uncertainty for uncertainty, _ in rows)
    assert set(candidates._holders) == {token for each in best for token in _held(candidates, each)}


def _held(candidates: Candidates, each: Suggested) -> set[int]:
    (number,) = (number for number, kept in candidates._kept.items() if kept is each)
    return {token for token, holders in candidates._holders.items() if number in holders}


@given(sets, sets)
def test_alike_texts_are_found_by_their_rarest_tokens(one: frozenset[int], other: frozenset[int]):
    candidates = Candidates(5)
    candidates.add(row(0.5, set(one)))
    candidates.add(row(0.4, set(other)))
    is_alike = len(one & other) >= ALIKE * len(one | other)
    assert are_alike(one, other) == is_alike
    assert len(candidates.best()) == 2 - is_alike


def test_of_alike_texts_the_most_uncertain_stays_and_of_equal_ones_the_first():
    candidates = Candidates(5)
    first, second, third = row(0.5, {1, 2, 3}), row(0.6, {1, 2, 3, 4}), row(0.6, {1, 2, 3})
    for each in (first, second, third):
        candidates.add(each)
    assert candidates.best() == [second]


def test_each_chosen_row_has_the_highest_product_of_uncertainty_and_distance():
    draw = random.Random(0)
    rows = [row(draw.random(), {number}, tuple(draw.gauss(0, 1) for _ in range(4))) for number in range(40)]
    rows.sort(key=lambda each: -each.uncertainty)
    chosen = choose(rows, 12)
    assert chosen[0] is rows[0]
    units = {id(each): each.vector_D / np.linalg.norm(each.vector_D) for each in rows}

    def gain(each: Suggested, before: list[Suggested]) -> float:
        near = min(float(np.linalg.norm(units[id(each)] - units[id(other)])) for other in before)
        return each.uncertainty * near

    for place in range(1, len(chosen)):
        best = max(gain(each, chosen[:place]) for each in rows)
        assert gain(chosen[place], chosen[:place]) == pytest.approx(best)
    assert choose(rows, 5) == chosen[:5]
    assert len({id(each) for each in choose(rows, 60)}) == 40
    assert choose([], 3) == []


def test_equal_vectors_are_chosen_last():
    rows = [row(0.9, {1}, (1.0, 0.0)), row(0.9, {2}, (1.0, 0.0)), row(0.1, {3}, (0.0, 1.0))]
    assert choose(rows, 3) == [rows[0], rows[2], rows[1]]


def rows_of(task: str) -> Iterator[Example]:
    words = ["cat", "dog", "mat", "house", "night", "dark"]
    for number, (one, other) in enumerate(itertools.permutations(words, 2)):
        text, where = f"the {one} ran " * (1 + number % 3), f"row {number}"
        if task == "tokens":
            yield running_text(where, {"id": number}, f"{text} {other}")
        else:
            yield TextExample(where, {"id": number}, (text, other), None)


@pytest.mark.parametrize("kind", ["classification", "multi-label", "tokens"])
def test_the_vector_of_a_row_is_the_input_of_the_last_layer_in_any_company(models: Path, kind: str):
    loaded = load_task_folder(models / kind)
    assert isinstance(loaded.model, HeadModel)
    examples = list(rows_of(kind)) if kind != "multi-label" else [example("a cat"), example("the dog ran")]
    runner = runner_of(loaded, CPU, batch_size=4)
    for found in suggest(runner, examples, 100):
        (item,) = found.answer.items
        (tokens,) = item.rows
        ids_BT, ones = torch.tensor([tokens.ids]), torch.zeros(1, tokens.length, dtype=torch.long)
        ones[:, tokens.second_starts :] = 1
        with torch.inference_mode():
            hidden_BTD = loaded.model.body(ids_BT, ones)
            pooled = loaded.model.pooler(hidden_BTD if kind == "tokens" else hidden_BTD[:, 0])
        want_D = pool(pooled, None, "mean")[0] if kind == "tokens" else pooled[0]
        assert torch.allclose(torch.from_numpy(found.vector_D), want_D, atol=1e-5)
        assert found.tokens == set(tokens.ids) - loaded.tokenizer.frame.special_ids
        assert found.uncertainty == found.answer.prediction.uncertainty
    assert not hooks(loaded.model)


def test_windows_of_a_text_give_one_row(models: Path):
    loaded = load_task_folder(models / "tokens")
    (found,) = suggest(runner_of(loaded, CPU), [running_text("here", {}, "the cat ran " * 90)], 3)
    assert len(found.answer.items) > 1
    assert found.vector_D.shape == (15,)


def test_a_text_of_more_windows_than_a_batch_has_rows_gives_one_row(models: Path):
    loaded = load_task_folder(models / "multi-label")
    settings = loaded.settings.model_copy(update={"windows": "mean", "max_windows": 20, "max_length": 16})
    runner = runner_of(loaded, CPU).reading(settings, LongRows(models / "multi-label"), batch_size=4)
    found = suggest(runner, [example("the cat ran " * 60), example("a dog")], 3)
    assert sorted(len(row.rows) for each in found for row in each.answer.items) == [1, 20]
    assert {each.vector_D.shape for each in found} == {(15,)}


def test_a_regression_has_no_uncertainty(models: Path):
    runner = runner_of(load_task_folder(models / "regression"), CPU)
    with pytest.raises(UserError, match="a regression model gives no probabilities"):
        suggest(runner, [TextExample("here", {}, ("a cat", "a dog"), None)], 3)


def test_the_hook_goes_if_the_rows_cannot_be_read(models: Path):
    loaded = load_task_folder(models / "multi-label")

    def broken() -> Iterator[Example]:
        yield example("the cat")
        raise UserError("broken")

    with pytest.raises(UserError, match="broken"):
        suggest(runner_of(loaded, CPU), broken(), 3)
    assert not hooks(loaded.model)


def classified(*logits: float, multi_label: bool = False) -> Classified:
    names = tuple("abcdef"[: len(logits)])
    return Classified(names[:1], names, np.array(logits, np.float32), multi_label)


@pytest.mark.parametrize(
    ("prediction", "uncertainty"),
    [
        (classified(3.0, 3.0, -5.0), 1.0),
        (classified(0.0, np.log(3.0)), 0.5),
        (classified(40.0, 0.0), 0.0),
        (classified(2.0), 0.0),
        (classified(9.0, 0.0, -9.0, multi_label=True), 1.0),
        (classified(np.log(3.0), 9.0, multi_label=True), 0.5),
        (Tagged(("O", "O"), (), probability=0.25), 0.75),
        (Tagged((), ()), 0.0),
        (Value(3.5), None),
    ],
)
def test_uncertainty(prediction: Classified | Tagged | Value, uncertainty: float | None):
    want = None if uncertainty is None else pytest.approx(uncertainty, abs=1e-6)
    assert prediction.uncertainty == want


def test_nearness_is_of_the_two_highest():
    assert nearness([0.1, 0.5, 0.4]) == pytest.approx(0.9)


def test_the_probability_of_tags_is_their_geometric_mean(models: Path):
    loaded = load_task_folder(models / "tokens")
    runner = runner_of(loaded, CPU)
    (answer,) = predict_stream(runner, [running_text("here", {}, "the cat ran")])
    (logits_TC,) = runner.logits(answer.items)
    best_W = logits_TC[answer.items[0].layout.positions].softmax(dim=-1).amax(dim=-1)
    assert isinstance(answer.prediction, Tagged)
    assert answer.prediction.probability == pytest.approx(float(best_W.prod() ** (1 / 3)), rel=1e-5)


def test_a_spelling_of_no_label_is_the_one_that_training_knows() -> None:
    settings = TaskSettings(type="classification", text="text", label="label", skip_labels=["-1"])
    rows = [TextExample(mark, {"text": mark, "label": mark}, (mark,), None) for mark in ("-1.0", "-1", "1")]
    said: list[str] = []
    assert [each.texts[0] for each in without_labels(rows, settings, said.append)] == ["-1.0", "-1"]


def left(settings: TaskSettings, *rows: dict) -> tuple[list[int], list[str]]:
    """The numbers of the rows without a label, and what is said."""
    said: list[str] = []
    examples = [TextExample(str(number), row, ("a cat",), None) for number, row in enumerate(rows)]
    return [int(each.where) for each in without_labels(examples, settings, said.append)], said


def test_a_column_with_a_number_is_the_one_of_the_first_row() -> None:
    numbered = TaskSettings(type="classification", text=0, label=1)
    rows = [{"text": "a", "kind": ""}, {"kind": "x", "text": "a"}, {"text": "a"}, {"text": "a", "kind": "y"}]
    said = ["left out: 2 rows with a label already (column 'kind')"]
    assert left(numbered, *rows) == ([0, 2], said)
    named = numbered.model_copy(update={"columns": ["text", "kind"]})
    assert left(named, *rows[::-1]) == ([1, 3], said)


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ({"text": 1, "label": 0}, {"text": "a line"}),
        ({"text": "message", "label": 0}, {"text": "a line"}),
        ({"text": "text", "label": 0}, {"text": "a table without the first column"}),
        ({"text": 0, "label": 1}, {"text": "a table without the second column"}),
        ({"type": "token-classification", "label": 1}, {"id": "CoNLL's columns", "text": "are others"}),
        ({"type": "multiple-choice", "text": 0, "choices": [2, 3], "label": 1}, {"text": "a", "x": "b"}),
    ],
)
def test_the_number_of_a_column_says_nothing_about_a_file_of_another_layout(values: dict, row: dict) -> None:
    assert left(TaskSettings.model_validate({"type": "classification"} | values), row) == ([0], [])


SPAN = {"start": 0, "end": 3, "label": "PER"}
STUDIO = {"data": {"text": "a cat"}}


def test_a_row_with_spans_is_labeled_and_one_with_an_empty_list_is_not() -> None:
    spans = TaskSettings(type="token-classification", format="spans")
    unlabeled = [
        {"text": "a cat"},
        {"text": "a cat", "label": []},
        {"text": "a cat", "spans": None},
        STUDIO | {"annotations": []},
        STUDIO | {"annotations": [{"was_cancelled": True, "result": []}], "predictions": [{"result": [{}]}]},
    ]
    labeled = [
        {"text": "a cat", "label": [[0, 3, "PER"]]},
        {"text": "a cat", "label": "no span", "spans": [SPAN]},
        STUDIO | {"annotations": [{"result": []}]},
        STUDIO | {"completions": [{"was_cancelled": True}, {"result": [{"value": SPAN}]}]},
    ]
    said = ["left out: 4 rows with a label already (their spans)"]
    assert left(spans, *labeled, *unlabeled) == ([4, 5, 6, 7, 8], said)
    assert left(spans.model_copy(update={"label": "ents"}), {"ents": [SPAN]}, {"ents": []})[0] == [1]


@pytest.mark.parametrize(("ticks", "left"), [(True, ["none"]), (False, ["one", "none"])])
def test_a_row_with_a_mark_is_labeled_and_one_with_an_empty_flag_is_not_yet(
    ticks: bool, left: list[str]
) -> None:
    values = {"type": "classification", "text": "text", "label": ["a", "b"], "ticks": ticks}
    marks = {"both": ("1", "1"), "one": ("1", ""), "none": ("", "")}
    rows = [
        TextExample(text, {"text": text, "a": a, "b": b}, (text,), None) for text, (a, b) in marks.items()
    ]
    said: list[str] = []
    found = without_labels(rows, TaskSettings(**values), said.append)
    assert [each.texts[0] for each in found] == left
    assert said == [f"left out: {counted(3 - len(left), 'row')} with a label already (column 'a', 'b')"]
