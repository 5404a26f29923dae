"""The losses of distillation beside a plain computation with transformers' own models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers

from bertcli.batches.batch import Batch
from bertcli.folders.model_folder import load_model_folder
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.distillation import Distillation, start_like
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import ONE_TEXT
from tests.families.published import family_folder

LENGTHS = torch.tensor([12, 7, 3])
MASKED = ((0, 2), (0, 5), (0, 9), (1, 1), (1, 4), (2, 1))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Teacher (BERT) and student (DistilBERT), with one vocabulary."""
    folder = tmp_path_factory.mktemp("distillation")
    teacher = family_folder("bert", folder / "teacher", num_hidden_layers=4)
    return teacher, family_folder("distilbert", folder / "student", num_hidden_layers=2)


def batch_of() -> Batch:
    generator = torch.Generator().manual_seed(3)
    ids_BT = torch.randint(5, 300, (3, 12), generator=generator)
    ids_BT[torch.arange(12) >= LENGTHS[:, None]] = 0
    rows_M, columns_M = torch.tensor(MASKED).T
    targets_M = torch.randint(5, 300, (len(MASKED),), generator=generator)
    return Batch(
        ids_BT, torch.zeros_like(ids_BT), LENGTHS, rows_M, columns_M, targets_M=targets_M, labels_B=None
    )


@pytest.mark.parametrize("weights", [(5.0, 2.0, 1.0), (1.0, 0.0, 0.0)])
def test_losses_and_gradients_are_those_of_a_plain_loop(
    folders: tuple[Path, Path], weights: tuple[float, float, float]
) -> None:
    batch = batch_of()
    teacher, student = (load_model_folder(folder, pairs=False).model.eval() for folder in folders)
    task = Distillation(MaskedLanguage(ONE_TEXT), teacher, 2.0, weights=weights)
    terms, counts = task.terms(student, batch), task.counts(batch)
    assert terms.keys() == counts.keys()
    loss = torch.stack([term.weight * term.loss / counts[name] for name, term in terms.items()]).sum()
    loss.backward()

    mask_BT = (torch.arange(12) < LENGTHS[:, None]).long()
    theirs: Any = transformers.DistilBertForMaskedLM.from_pretrained(folders[1]).eval()
    own = theirs(batch.ids_BT, attention_mask=mask_BT, output_hidden_states=True)
    with torch.no_grad():
        taught = transformers.BertForMaskedLM.from_pretrained(folders[0]).eval()(
            batch.ids_BT, attention_mask=mask_BT, output_hidden_states=True
        )
    places = batch.rows_M, batch.columns_M
    divergence = F.kl_div(
        F.log_softmax(own.logits[places] / 2, dim=-1),
        F.softmax(taught.logits[places] / 2, dim=-1),
        reduction="batchmean",
    )
    words = F.cross_entropy(own.logits[places], batch.targets_M)
    real = mask_BT.bool()
    angle = F.cosine_embedding_loss(
        own.hidden_states[-1][real], taught.hidden_states[-1][real], torch.ones(int(real.sum()))
    )
    want = weights[0] * 4 * divergence + weights[1] * words + weights[2] * angle
    want.backward()
    assert float(loss.detach()) == pytest.approx(float(want.detach()), rel=1e-5)
    for name, value in (("kl", 4 * divergence), ("mlm", words), ("cosine", angle)):
        if name in terms:
            got = float(terms[name].loss.detach()) / counts[name]
            assert got == pytest.approx(float(value.detach()), rel=1e-4, abs=1e-6)
    gradient = student.get_parameter("body.encoder.layers.1.feed_forward.expand.weight").grad
    wanted = theirs.distilbert.transformer.layer[1].ffn.lin1.weight.grad
    torch.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-6)


def test_a_teacher_may_have_rows_beyond_the_vocabulary(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Padded tables are common; they change neither the loss nor what the student starts with."""
    sizes = load_model_folder(folders[0], pairs=False).model.architecture
    padded = PretrainingModel(replace(sizes, vocab_size=sizes.vocab_size + 14), pair_head=False).eval()
    plain, student = (load_model_folder(folder, pairs=False).model.eval() for folder in folders)
    state = padded.state_dict()
    for name, own in plain.state_dict().items():
        state[name][: len(own)] = own
    padded.load_state_dict(state)
    batch = batch_of()
    tasks = [Distillation(MaskedLanguage(ONE_TEXT), each, 2.0, weights=(1, 1, 1)) for each in (plain, padded)]
    losses = [float(task.terms(student, batch)["kl"].loss.detach()) for task in tasks]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    start_like(student, padded)
    words = student.body.embeddings.word.weight
    assert torch.equal(words, plain.body.embeddings.word.weight)


def test_a_student_starts_with_layers_of_its_teacher(folders: tuple[Path, Path]) -> None:
    teacher = load_model_folder(folders[0], pairs=False).model
    sizes = load_model_folder(folders[1], pairs=False).model.architecture
    student = PretrainingModel(sizes, pair_head=False)
    start_like(student, teacher)
    own, others = student.body.encoder.layers, teacher.body.encoder.layers
    for number, other in ((0, 0), (1, 3)):
        for ours, theirs in zip(own[number].parameters(), others[other].parameters(), strict=True):
            assert torch.equal(ours, theirs)
    assert torch.equal(student.body.embeddings.word.weight, teacher.body.embeddings.word.weight)


def test_the_teacher_does_not_learn(folders: tuple[Path, Path]) -> None:
    teacher, student = (load_model_folder(folder, pairs=False).model for folder in folders)
    task = Distillation(MaskedLanguage(ONE_TEXT), teacher, 2.0, weights=(1.0, 1.0, 1.0))
    torch.stack([term.loss for term in task.terms(student.train(), batch_of()).values()]).sum().backward()
    assert not teacher.training
    assert all(parameter.grad is None for parameter in teacher.parameters())
