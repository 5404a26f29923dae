"""The losses of replaced words beside a plain computation with transformers' own models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers

from bertcli.batches.share import BatchSizes, Share
from bertcli.batches.stream import BatchStream
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.token_store import OpenStore, open_store
from bertcli.folders.model_folder import load_rtd_folder
from bertcli.objectives.learner import learner_of
from bertcli.objectives.replaced_tokens import ReplacedTokens
from bertcli.training.pretraining import pretrain
from bertcli.training.scores import TermSums, count_step
from tests.decided import data_config
from tests.small_runs import small_config


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rtd")
    config = small_config(corpus, folder / "run", data={"objective": "rtd"}, training={"steps": 2})
    config["corpus"]["store"] = str(folder / "store")
    config["model"] |= {"family": "electra"}
    pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)
    return folder


def stream_of(folder: Path, **keys) -> tuple[OpenStore, BatchStream]:
    store = open_store(folder / "store")
    data = data_config(objective="rtd", max_length=32, mask_split=(0.85, 0.0, 0.15), **keys)
    return store, BatchStream(store.train, store.tokenizer, data, seed=3, sizes=BatchSizes(12))


@torch.no_grad()
def test_losses_and_labels_are_those_of_a_plain_computation(run: Path) -> None:
    _, stream = stream_of(run)
    batch = stream[0]
    model = load_rtd_folder(run / "run" / "model", "tied").eval()
    terms = ReplacedTokens(50.0).terms(model, batch)

    generator = transformers.ElectraForMaskedLM.from_pretrained(run / "run" / "model" / "generator").eval()
    discriminator = transformers.ElectraForPreTraining.from_pretrained(run / "run" / "model").eval()
    columns_T = torch.arange(batch.ids_BT.shape[1])
    mask_BT = columns_T < batch.lengths_B[:, None]
    inputs = {"attention_mask": mask_BT.long(), "token_type_ids": batch.segments_BT}
    logits_MV = generator(batch.ids_BT, **inputs).logits[batch.rows_M, batch.columns_M]
    assert batch.draws_M is not None
    sums = np.cumsum(logits_MV.double().softmax(-1).numpy(), axis=1)
    words = (sums <= batch.draws_M.numpy()[:, None]).sum(axis=1)
    replaced_BT, original_BT = batch.ids_BT.clone(), batch.ids_BT.clone()
    replaced_BT[batch.rows_M, batch.columns_M] = torch.from_numpy(words)
    original_BT[batch.rows_M, batch.columns_M] = batch.targets_M
    labels_BT = (replaced_BT != original_BT).float()
    found_BT = discriminator(replaced_BT, **inputs).logits
    rtd = F.binary_cross_entropy_with_logits(found_BT[mask_BT], labels_BT[mask_BT], reduction="sum")
    mlm = F.cross_entropy(logits_MV, batch.targets_M, reduction="sum")
    assert float(terms["rtd"].loss) == pytest.approx(float(rtd), rel=1e-5)
    assert float(terms["mlm"].loss) == pytest.approx(float(mlm), rel=1e-5)
    share = terms["rtd"].shares["rtd_replaced"]
    assert [int(part) for part in share] == [int(labels_BT.sum()), int(mask_BT.sum())]


@torch.no_grad()
def test_micro_batches_give_the_sums_of_the_step(run: Path) -> None:
    _, stream = stream_of(run)
    model, task = load_rtd_folder(run / "run" / "model", "tied").eval(), ReplacedTokens(50.0)
    found = []
    for size in (12, 5, 1):
        micro_batches, sums = stream.micro_batches(0, Share(size)), TermSums()
        for _, batch, is_dummy in micro_batches:
            sums.add(task.terms(model, batch), is_dummy)
        found.append(sums.means(count_step(task, micro_batches)[0]))
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)
    assert set(found[0][2]) == {"rtd_replaced", "rtd_found"}


def test_references_say_what_chance_gives(run: Path) -> None:
    model = load_rtd_folder(run / "run" / "model", "tied")
    words, replaced = learner_of("rtd").references(
        model.architecture, unigram_entropy=5.0, fresh=True, mask_rate=0.15
    )
    assert words.predicts_words
    assert replaced.first_loss == pytest.approx(0.693, abs=1e-3)
    assert replaced.chance_loss == pytest.approx(0.423, abs=1e-3)
    assert replaced.chance_accuracy == 0.85
