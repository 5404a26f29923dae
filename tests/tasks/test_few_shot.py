"""Few rows a label: texts are compared with each other first; the result is an ordinary classification."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from bertcli.batches.share import Share
from bertcli.config.task import TaskSettings
from bertcli.model.task_models import POOLED, append_mean_layer, build_task_model, may_choose_pooling, pool
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample
from bertcli.tasks.few_shot import CONTRAST, PASSES, FewShot, like_and_unlike
from bertcli.tasks.supervised import LabeledBatch
from bertcli.training.loop import joined
from tests.finetunes import Killed, checked, kill_at, rows_but_times, run, spam_config, spam_files
from tests.folders.folders import ODD, tiny_tokenizer
from tests.small_runs import read_rows


@given(size=st.integers(1, 7), classes=st.integers(1, 4), seed=st.integers(0, 1000))
def test_the_contrast_is_that_of_a_plain_loop_over_pairs(size: int, classes: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(size, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (size,), generator=generator)
    losses = []
    for i in range(size):
        near = [
            math.exp(float(F.cosine_similarity(vectors[i], vectors[j], dim=0)) / 0.3) for j in range(size)
        ]
        like = [j for j in range(size) if j != i and labels[j] == labels[i]]
        if like:
            others = sum(near) - near[i]
            losses.append(sum(-math.log(near[j] / others) for j in like) / len(like))
    found = like_and_unlike(vectors, labels, temperature=0.3)
    assert float(found) == pytest.approx(sum(losses) / max(1, len(losses)), abs=1e-9)


@pytest.mark.parametrize("progress", [0.0, CONTRAST])
def test_micro_batches_give_the_gradients_of_the_whole_step(progress: float) -> None:
    """All texts of a step are compared, also where they are computed one after the other."""
    settings = TaskSettings(type="classification", text="text", max_length=16, doc_stride=4, windows="mean")
    task = FewShot(settings, ("a", "b", "c"))
    examples = [
        TextExample("", {}, ("the cat sat on a mat " * (1 + number % 4),), label="abc"[number % 3])
        for number in range(9)
    ]
    items = task.encode(examples, tiny_tokenizer())
    torch.manual_seed(0)
    model: Any = build_task_model("sequences", ODD, 3).eval()
    append_mean_layer(model)
    whole = LabeledBatch(tuple(items), pad_id=0, progress=progress)
    expected = task.terms(model, whole)[""].loss
    expected.backward()
    plain = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    assert len(plain) == len(list(model.parameters()))
    model.zero_grad()
    parts = whole.micro_batches(Share(2))
    assert len(parts) > 3
    second, cached = joined(task, parts, lambda task, each: task.outputs(model, each.batch))
    loss = torch.stack([second.terms(model, each.batch)[""].loss for each in cached]).sum()
    loss.backward()
    torch.testing.assert_close(loss, expected)
    found = [parameter.grad for parameter in model.parameters()]
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-5)


def test_one_layer_more_gives_the_head_the_mean_of_the_tokens() -> None:
    torch.manual_seed(0)
    model: Any = build_task_model("sequences", ODD, 3).eval()
    ids_BT, mask_BT = torch.randint(5, ODD.vocab_size, (4, 9)), torch.ones(4, 9, dtype=torch.bool)
    mask_BT[1, 4:] = False
    rows = ids_BT, torch.zeros_like(ids_BT), mask_BT
    mean_BD = pool(model.body(*rows), mask_BT, "mean")
    append_mean_layer(model)
    assert model.architecture.layers == len(model.body.encoder.layers) == ODD.layers + 1
    outputs = model(*rows, with_vectors=True)
    torch.testing.assert_close(outputs[:, :3], model(*rows))
    vectors_BD = outputs[:, 3:].atanh() / POOLED
    torch.testing.assert_close(vectors_BD, F.layer_norm(mean_BD, (ODD.hidden,)), atol=0.2, rtol=0.0)
    assert F.cosine_similarity(vectors_BD, F.layer_norm(mean_BD, (ODD.hidden,))).min() > 0.99


@pytest.mark.parametrize(
    "changes", [{"family": "distilbert"}, {"family": "albert", "layer_groups": 1}, {"family": "electra"}]
)
def test_no_layer_is_added_where_the_head_could_not_read_it(changes: dict[str, Any]) -> None:
    """The head of DistilBERT has relu, which would cut the vectors."""
    assert may_choose_pooling(build_task_model("sequences", ODD, 3))
    assert not may_choose_pooling(build_task_model("sequences", replace(ODD, **changes), 3))
    assert not may_choose_pooling(build_task_model("tokens", ODD, 3))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


def config(files: Path, root: Path, **sections: Any) -> dict[str, Any]:
    task = {"few_shot": True} | sections.pop("task", {})
    training = {"epochs": 0.125} | sections.pop("training", {})
    return spam_config(files, output_dir=str(root), task=task, training=training, **sections)


@pytest.fixture(scope="module")
def done(files: Path) -> Path:
    run(config(files, files / "run", checkpoint={"every_steps": 2}))
    return files / "run"


def test_the_steps_compare_first_then_learn_the_labels(done: Path) -> None:
    losses = [row["loss"] for row in read_rows(done / "metrics.jsonl", "train")]
    steps = round(0.125 * PASSES * 96 / 8)
    assert len(losses) == steps
    assert min(losses[: round(CONTRAST * steps)]) > 2 > 1 > max(losses[round(CONTRAST * steps) :])


@pytest.mark.parametrize("points", [[("train", 3)], [("rename", 4), ("train", 7)]])
def test_killed_anywhere_it_ends_as_the_undisturbed_one(
    files: Path, done: Path, tmp_path: Path, points: list[tuple[str, int]]
) -> None:
    own = config(files, tmp_path / "run", checkpoint={"every_steps": 2})
    for number, (point, step) in enumerate(points):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, point, step)
            with pytest.raises(Killed):
                run(own, resume=number > 0)
    run(own, resume=True)
    assert rows_but_times(tmp_path / "run" / "metrics.jsonl") == rows_but_times(done / "metrics.jsonl")
    weights = [(each / "model" / "model.safetensors").read_bytes() for each in (tmp_path / "run", done)]
    assert weights[0] == weights[1]


def test_the_folder_is_an_ordinary_one_of_transformers(files: Path, done: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    model: Any = AutoModelForSequenceClassification.from_pretrained(done / "model")
    assert model.state_dict().keys() == load_file(done / "model" / "model.safetensors").keys()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"task": {"multi_label": True}}, "few_shot is for type: classification with one label a text"),
        ({"task": {"type": "regression"}}, "few_shot is for type: classification, not regression"),
        ({"distillation": {"teacher": "x"}}, "distillation: not with task.few_shot"),
    ],
)
def test_what_it_is_not_for_is_refused(
    files: Path, tmp_path: Path, sections: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        checked(config(files, tmp_path, **sections))
