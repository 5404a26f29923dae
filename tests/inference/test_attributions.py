"""What each word adds to an answer: complete for every task, and right where it is known."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.folders.task_folder import LoadedTask, load_task_folder
from bertcli.inference.attributions import TOLERANCE, Attributions, attribute, decide
from bertcli.inference.predict import runner_of
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import CPU
from tests.folders.folders import saved_task
from tests.inference.test_decision import TEXTS, example_of


def loaded_task(folder: Path, kind: str) -> LoadedTask:
    saved_task(folder, kind, max_positions=128)
    return load_task_folder(folder)


def explained(loaded: LoadedTask, example: Example, target: int | None = None) -> Attributions:
    runner = runner_of(loaded, CPU)
    return attribute(runner, decide(runner, example, target))


@pytest.mark.parametrize("kind", list(TEXTS))
def test_scores_of_the_words_sum_to_what_the_words_add(tmp_path: Path, kind: str):
    loaded = loaded_task(tmp_path, kind)
    found = explained(loaded, example_of(loaded, TEXTS[kind]))
    assert found.is_complete
    assert len(found.words) == len(found.scores) > 1
    most = TOLERANCE * sum(map(abs, found.scores)) + 1e-5
    assert sum(found.scores) == pytest.approx(found.value - found.baseline, abs=2 * most)
    assert found.error == pytest.approx(sum(found.scores) - (found.value - found.baseline), abs=1e-5)


def test_the_baseline_is_the_row_of_masks(tmp_path: Path):
    loaded = loaded_task(tmp_path, "multi-label")
    found = explained(loaded, example_of(loaded, ["the cat sat"]), 1)
    tokenizer = loaded.tokenizer
    masked = tokenizer.frame.row([tokenizer.mask_id] * 3)
    with torch.no_grad():
        logits_BC = loaded.model(torch.tensor([masked.ids]), torch.zeros(1, masked.length, dtype=torch.long))
    assert found.baseline == pytest.approx(float(logits_BC[0, 1]), abs=1e-5)


def test_where_no_token_reads_another_the_tagged_word_alone_has_a_score(tmp_path: Path):
    loaded = loaded_task(tmp_path, "tokens")
    example = example_of(loaded, ["the cats sat"])
    for name, parameter in loaded.model.named_parameters():
        if name.endswith("attention.output.weight"):
            parameter.data.zero_()
    found = explained(loaded, example, 1)
    assert found.answer.endswith("(cats)")
    the, cats, sat = found.scores
    assert (the, sat) == (0.0, 0.0)
    assert cats == pytest.approx(found.value - found.baseline, rel=0.02)


def test_the_opposite_head_gives_the_opposite_signs(tmp_path: Path):
    loaded = loaded_task(tmp_path, "regression")
    example = example_of(loaded, TEXTS["regression"])
    before = explained(loaded, example)
    for parameter in loaded.model.classifier.parameters():  # pyright: ignore[reportAttributeAccessIssue]
        parameter.data.neg_()
    after = explained(loaded, example)
    assert after.scores == pytest.approx([-score for score in before.scores], abs=1e-5)


def test_nothing_stays_behind_in_the_model(tmp_path: Path):
    loaded = loaded_task(tmp_path, "classification")
    example = example_of(loaded, TEXTS["classification"])
    first = explained(loaded, example)
    assert explained(loaded, example) == first
    assert not loaded.model.body.embeddings.word._forward_hooks
    assert all(parameter.grad is None for parameter in loaded.model.parameters())
