"""Vectors of texts: the pooling written out, hidden states as in transformers, and no effect of company."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.config.task import PoolingMode
from bertcli.folders.model_folder import load_encoder_folder
from bertcli.folders.sentence_transformers import SentencePooling
from bertcli.inference.vectors import Embedder
from bertcli.model.task_models import PooledModel, pool
from bertcli.tasks.examples import TextExample
from tests.folders.folders import ODD, save_encoder, stirred, tiny_tokenizer

TEXTS = ["the cat sat", "?", "a dog ran on the mat in the dark night", "the house was dark", "?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    save_encoder(folder, stirred(PooledModel(ODD, pooler=True)), tiny_tokenizer())
    return folder


def embedder(folder: Path, pooling: SentencePooling, batch_size: int) -> Embedder:
    model, tokenizer = load_encoder_folder(folder)
    return Embedder(model.eval(), tokenizer, pooling, torch.device("cpu"), "fp32", batch_size)


def vectors(embed: Embedder, texts: list[str]) -> torch.Tensor:
    found = list(embed.embed(TextExample("here", {}, (text,), None) for text in texts))
    assert [each.text for each in found] == texts
    return torch.stack([each.vector_D for each in found])


def test_each_way_of_pooling_leaves_padding_out() -> None:
    hidden_BTD = torch.randn(2, 4, 3)
    mask_BT = torch.tensor([[True, True, True, False], [True, True, True, True]])
    real = [hidden_BTD[0, :3], hidden_BTD[1]]
    wanted: dict[PoolingMode, list[torch.Tensor]] = {
        "mean": [tokens.mean(dim=0) for tokens in real],
        "max": [tokens.max(dim=0).values for tokens in real],
        "cls": [tokens[0] for tokens in real],
    }
    for mode, expected in wanted.items():
        torch.testing.assert_close(pool(hidden_BTD, mask_BT, mode), torch.stack(expected))
        torch.testing.assert_close(pool(hidden_BTD[1:], None, mode), expected[1][None])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("mode", ["mean", "cls", "max"])
def test_vectors_are_those_of_transformers_and_sentence_transformers(
    folder: Path, mode: str, normalize: bool
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    expected = []
    for text in TEXTS:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=8)
        with torch.no_grad():
            hidden_TD = model(**inputs).last_hidden_state[0]
        mask_T1 = inputs["attention_mask"][0][:, None].float()
        if mode == "mean":
            vector_D = (hidden_TD * mask_T1).sum(dim=0) / mask_T1.sum().clamp(min=1e-9)
        else:
            vector_D = hidden_TD[0] if mode == "cls" else hidden_TD.max(dim=0).values
        expected.append(vector_D / vector_D.norm() if normalize else vector_D)
    pooling = SentencePooling(mode, normalize, max_length=8)  # pyright: ignore[reportArgumentType]
    for batch_size in (1, 2, 16):
        found = vectors(embedder(folder, pooling, batch_size), TEXTS)
        torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-5)


@pytest.mark.parametrize("normalize", [True, False])
def test_the_vector_of_a_long_text_is_the_mean_over_the_tokens_of_its_windows(
    folder: Path, normalize: bool
) -> None:
    pooling = SentencePooling("mean", normalize, max_length=6, windows="mean", doc_stride=0)
    parts = ["a dog ran on", "the mat in the", "dark night"]
    cut = embedder(folder, SentencePooling("mean", normalize, max_length=6), 2)
    expected_D = (torch.tensor([[6.0], [6.0], [4.0]]) * vectors(cut, parts)).sum(dim=0) / 16
    expected_D = expected_D / expected_D.norm() if normalize else expected_D
    for batch_size in (1, 2, 16):
        found = vectors(embedder(folder, pooling, batch_size), TEXTS)
        torch.testing.assert_close(found[2], expected_D, rtol=0, atol=1e-5)
        torch.testing.assert_close(found[:2], vectors(cut, TEXTS[:2]), rtol=0, atol=1e-5)


def test_long_texts_are_cut_where_the_model_or_the_folder_ends(folder: Path) -> None:
    text = TextExample("here", {}, ("the cat " * 20,), None)
    for longest, dropped in ((None, 42 - ODD.max_positions), (8, 34)):
        (found,) = embedder(folder, SentencePooling("mean", False, longest), 2).embed([text])
        assert found.dropped == dropped
