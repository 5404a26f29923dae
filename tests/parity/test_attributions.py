"""Integrated gradients of every family against the same integral around transformers' own models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from bertcli.folders.task_folder import load_task_folder  # noqa: E402
from bertcli.inference.attributions import attribute, decide  # noqa: E402
from bertcli.inference.inputs import read_inputs  # noqa: E402
from bertcli.inference.predict import runner_of  # noqa: E402
from bertcli.tasks.supervised import CPU  # noqa: E402
from tests.parity.families import FIRST, Case, for_transformers, saved_task  # noqa: E402


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_scores_are_those_of_transformers_gradients(tmp_path: Path, case: Case) -> None:
    theirs = saved_task(tmp_path, case, "classification")
    loaded = load_task_folder(tmp_path)
    settings = loaded.settings.model_copy(update={"text": ["a", "b"]})
    example = next(read_inputs(["The cats sat.", "A dog ran!"], None, settings, report=print))
    runner = runner_of(loaded, CPU, settings)
    decision = decide(runner, example)
    found = attribute(runner, decision, steps=16)
    row, label = decision.read.row, loaded.labels.index(found.answer)
    segments_BT = (torch.arange(row.length) >= row.second_starts).long()[None]
    named = for_transformers(case, (torch.tensor([row.ids]), segments_BT, None))
    ids_BT = named.pop("input_ids")
    masked_BT = ids_BT.clone()
    for word in decision.read.words:
        masked_BT[0, list(word.tokens)] = loaded.tokenizer.mask_id
    table = theirs.get_input_embeddings()
    input_BTE, baseline_BTE = table(ids_BT).detach(), table(masked_BT).detach()
    scores_T = torch.zeros(row.length)
    for point, weight in zip(*np.polynomial.legendre.leggauss(found.steps), strict=True):
        at_BTE = (baseline_BTE + (point + 1) / 2 * (input_BTE - baseline_BTE)).float().requires_grad_()
        theirs(inputs_embeds=at_BTE, **named).logits[0, label].backward()
        scores_T += weight / 2 * (at_BTE.grad * (input_BTE - baseline_BTE))[0].sum(dim=-1)
    want = [float(scores_T[list(word.tokens)].sum()) for word in decision.read.words]
    assert found.scores == pytest.approx(want, abs=1e-4 * sum(map(abs, want)))
    assert sum(map(abs, want)) > 0.01
