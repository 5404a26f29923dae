"""Programs that know text-embeddings-inference or OpenAI get what they expect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest
from huggingface_hub import InferenceClient

import bertcli
from tests.inference.serve.serving import Client, near, opened, serving


@pytest.fixture(scope="module")
def vectors(folders: Path) -> Iterator[Client]:
    with serving(opened(folders, "vectors")) as client:
        yield client


def lengths(vectors: object) -> list[float]:
    return np.linalg.norm(np.array(vectors), axis=-1).tolist()


def test_vectors_have_length_1_unless_they_are_asked_as_they_are(vectors: Client, folders: Path) -> None:
    expected = bertcli.load(folders / "vectors").embed(["the cat", "a dog"])
    found = vectors.post("/embed", {"inputs": ["the cat", "a dog"]}).json
    assert lengths(found) == pytest.approx([1, 1])
    raw = vectors.post("/embed", {"inputs": ["the cat", "a dog"], "normalize": False}).json
    assert np.allclose(raw, expected, atol=1e-6)
    assert vectors.post("/", {"inputs": "the cat"}).json == [pytest.approx(found[0], abs=1e-6)]


def test_texts_that_are_too_long_are_refused_unless_they_may_be_cut(vectors: Client) -> None:
    long = {"inputs": ["a", "the cat sat on it " * 10]}
    reply = vectors.post("/embed", long)
    assert (reply.status, reply.json["error_type"]) == (413, "Validation")
    assert reply.json["error"].startswith("text 2: 52 tokens, of which the model reads 16")
    assert vectors.post("/embed", long | {"truncate": True}).status == 200


def test_labels_with_scores_the_highest_first(client: Client, folders: Path) -> None:
    expected = bertcli.load(folders / "multi-label").predict("the cat")[0]["probabilities"]
    found = client.post("/predict", {"inputs": "the cat"}).json
    assert {each["label"]: each["score"] for each in found} == pytest.approx(expected, abs=1e-6)
    assert [each["score"] for each in found] == sorted(expected.values(), reverse=True)
    assert near(client.post("/predict", {"inputs": [["the cat"], ["a dog"]]}).json[0], found)
    assert near(client.post("/", {"inputs": "the cat"}).json, found)
    raw = client.post("/predict", {"inputs": "the cat", "raw_scores": True}).json
    by_sigmoid = {each["label"]: 1 / (1 + np.exp(-each["score"])) for each in raw}
    assert by_sigmoid == pytest.approx(expected, abs=1e-6)


def test_pairs_are_two_texts(folders: Path) -> None:
    with serving(opened(folders, "classification")) as client:
        expected = bertcli.load(folders / "classification").predict([("the cat", "a dog")])[0]
        found = client.post("/predict", {"inputs": ["the cat", "a dog"]}).json
        assert {each["label"]: each["score"] for each in found} == pytest.approx(expected["probabilities"])
        assert near(client.post("/predict", {"inputs": [["the cat", "a dog"]]}).json, [found])


def test_texts_are_ranked_by_the_score_with_the_query(client: Client, folders: Path) -> None:
    texts = ["a dog", "the cat", "dark"]
    values = bertcli.load(folders / "regression").predict([("the cat", text) for text in texts])
    raw = client.post("/rerank", {"query": "the cat", "texts": texts, "raw_scores": True}).json
    assert {each["index"]: each["score"] for each in raw} == pytest.approx(
        {number: each["value"] for number, each in enumerate(values)}, abs=1e-6
    )
    found = client.post("/rerank", {"query": "the cat", "texts": texts, "return_text": True}).json
    assert [each["index"] for each in found] == [each["index"] for each in raw]
    for each, as_it_is in zip(found, raw, strict=True):
        assert each["text"] == texts[each["index"]]
        assert each["score"] == pytest.approx(1 / (1 + np.exp(-as_it_is["score"])), abs=1e-6)


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/predict", {"inputs": "a"}, "model is not a classifier model"),
        ("/rerank", {"query": "a", "texts": ["b"]}, "model is not a re-ranker model"),
    ],
)
def test_a_model_of_another_kind_is_refused(vectors: Client, path: str, body: object, message: str) -> None:
    reply = vectors.post(path, body)
    assert (reply.status, reply.json) == (424, {"error": message, "error_type": "Backend"})


def test_the_client_of_openai(vectors: Client, folders: Path) -> None:
    client = openai.OpenAI(base_url=f"{vectors.url}/v1", api_key="none", max_retries=0)
    unit = bertcli.load(folders / "vectors").embed(["the cat", "a dog"], normalize=True)
    found = client.embeddings.create(model="text-embedding-3-small", input=["the cat", "a dog"])
    assert np.allclose([each.embedding for each in found.data], unit, atol=1e-6)
    assert (found.model, found.usage.prompt_tokens) == ("vectors", 8)
    exact = client.embeddings.create(model="vectors", input="the cat", encoding_format="float")
    assert np.allclose(exact.data[0].embedding, unit[0], atol=1e-6)
    with pytest.raises(openai.UnprocessableEntityError, match="the vectors of vectors have 15 numbers"):
        client.embeddings.create(model="vectors", input="the cat", dimensions=4)
    with pytest.raises(openai.APIStatusError, match="tokens, of which the model reads 16"):
        client.embeddings.create(model="vectors", input="cat " * 99)


def test_the_name_of_one_of_several_models_must_be_known(client: Client) -> None:
    asking = openai.OpenAI(base_url=f"{client.url}/v1", api_key="none", max_retries=0)
    assert asking.embeddings.create(model="words", input="the cat").model == "words"
    with pytest.raises(openai.NotFoundError, match="give one of vectors, words"):
        asking.embeddings.create(model="text-embedding-3-small", input="the cat")


def test_the_client_of_huggingface_hub(vectors: Client, client: Client, folders: Path) -> None:
    found = InferenceClient(vectors.url).feature_extraction("the cat")
    assert np.allclose(found, bertcli.load(folders / "vectors").embed("the cat", normalize=True), atol=1e-6)
    labels = InferenceClient(client.url).text_classification("the cat", top_k=2)
    expected = bertcli.load(folders / "multi-label").predict("the cat")[0]["probabilities"]
    best = sorted(expected.items(), key=lambda each: -each[1])[:2]
    assert [(each.label, each.score) for each in labels] == [
        (name, pytest.approx(score)) for name, score in best
    ]
