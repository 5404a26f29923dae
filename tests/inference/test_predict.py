"""A text's answer depends on nothing but the text, and only a bounded stretch is read ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bertcli.batches.batch import batch_of
from bertcli.config.task import TaskSettings
from bertcli.folders.task_folder import LoadedTask, load_task_folder
from bertcli.inference import predict as buffers
from bertcli.inference.inputs import read_inputs
from bertcli.inference.predict import Predicted, Runner, predict_stream
from bertcli.tasks.examples import TextExample
from bertcli.tasks.supervised import build_task
from tests.folders.folders import saved_task

TEXTS = [
    "the cat",
    "a dog ran on the mat, and it was dark",
    "night",
    "she sat in the dark house and ran " * 4,
    "mats and cats",
    "?",
    "he was sitting in the house of the dog",
]


def example(text: str) -> TextExample:
    return TextExample("here", {"text": text}, (text,), None)


def runner(loaded: LoadedTask, batch_size: int) -> Runner:
    task = build_task(loaded.settings, loaded.labels)
    model = loaded.model.eval()
    return Runner(model, task, loaded.tokenizer, torch.device("cpu"), "fp32", batch_size)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedTask:
    folder = tmp_path_factory.mktemp("multi-label")
    saved_task(folder, "multi-label", max_positions=128)
    return load_task_folder(folder)


def probabilities(loaded: LoadedTask, texts: list[str], batch_size: int) -> list[list[float]]:
    stream = predict_stream(runner(loaded, batch_size), map(example, texts))
    answers = list(stream)
    assert [answer.example.columns["text"] for answer in answers] == texts
    return [list(answer.prediction.as_json()["probabilities"].values()) for answer in answers]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 64])
def test_neighbors_place_and_batch_size_change_no_answer(loaded: LoadedTask, batch_size: int) -> None:
    alone = {text: probabilities(loaded, [text], 1)[0] for text in TEXTS}
    assert len({tuple(answer) for answer in alone.values()}) == len(TEXTS)
    for texts in (TEXTS, TEXTS[::-1], TEXTS[3:] + TEXTS + TEXTS[:3]):
        expected = torch.tensor([alone[text] for text in texts])
        found = torch.tensor(probabilities(loaded, texts, batch_size))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "row"), [("tokens", 1), ("questions", 2), ("choices", 4)])
def test_examples_of_several_rows_keep_their_answers_in_any_company(
    tmp_path: Path, kind: str, row: int
) -> None:
    saved_task(tmp_path, kind, max_positions=128)
    loaded = load_task_folder(tmp_path)
    settings = loaded.settings.model_copy(update={"max_length": 24})
    loaded = replace(loaded, settings=settings)

    def examples() -> list[object]:
        shifted = [TEXTS[i:] + TEXTS[:i] for i in range(len(TEXTS))]
        if row == 1:
            return [one for text in TEXTS for one in read_inputs([text], None, settings, print)]
        return [one for texts in shifted for one in read_inputs(texts[:row], None, settings, print)]

    def answers(batch_size: int) -> list[dict[str, object]]:
        stream = predict_stream(runner(loaded, batch_size), examples())
        return [predicted.prediction.as_json() for predicted in stream]

    whole = answers(16)
    assert len({str(answer) for answer in whole}) > 1
    for one, other in zip(answers(1), whole, strict=True):
        assert _rounded(one) == _rounded(other)


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return pytest.approx(value, abs=1e-5) if isinstance(value, float) else value


def test_only_a_bounded_stretch_is_read_ahead(loaded: LoadedTask, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0

    def endless() -> Iterator[TextExample]:
        nonlocal read
        while True:
            read += 1
            yield example("the cat sat")

    stream = predict_stream(runner(loaded, 2), endless())
    first: Predicted = next(stream)
    assert first.dropped == 0
    assert read == 2 * buffers.BUFFERED_BATCHES
    monkeypatch.setattr(buffers, "BUFFERED_CHARACTERS", 30)
    assert [len(some) for some in buffers.in_buffers([example("the cat sat")] * 7, 2)] == [3, 3, 1]


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_windows_of_long_texts_are_joined_in_any_company(loaded: LoadedTask, mode: str) -> None:
    changed = {"max_length": 16, "doc_stride": 4, "windows": mode, "max_windows": 2}
    long = replace(loaded, settings=loaded.settings.model_copy(update=changed))
    longest = TEXTS[3]
    (item,) = runner(long, 1).task.encode([example(longest)], loaded.tokenizer)
    assert (len(item.rows), item.dropped) == (2, 32 - 24)
    with torch.no_grad():
        logits_WC = torch.cat([loaded.model(*batch_of([row], 0, torch.device("cpu"))) for row in item.rows])
    joined_C = logits_WC.mean(dim=0) if mode == "mean" else logits_WC.max(dim=0).values
    for batch_size in (1, 3, 64):
        found = torch.tensor(probabilities(long, TEXTS, batch_size))
        torch.testing.assert_close(found[3], joined_C.sigmoid(), rtol=0, atol=1e-5)
        alone = torch.tensor(probabilities(loaded, TEXTS[:1], 1))
        torch.testing.assert_close(found[:1], alone, rtol=0, atol=1e-5)


def test_what_does_not_fit_is_counted(loaded: LoadedTask) -> None:
    settings: TaskSettings = loaded.settings.model_copy(update={"max_length": 16})
    short = replace(loaded, settings=settings)
    dropped = [a.dropped for a in predict_stream(runner(short, 2), map(example, TEXTS))]
    assert [count > 0 for count in dropped] == [False, False, False, True, False, False, False]
