"""The answers are the objects of `--json`, and the errors are the messages of the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import bertcli
from bertcli.inference.opened import Compute
from bertcli.inference.serve.engine import open_served
from tests.folders.folders import saved_model, saved_task
from tests.inference.serve.conftest import NAMES
from tests.inference.serve.serving import Client, near, opened, serving

Bertcli = Callable[..., tuple[int, str, str]]
ROWS: dict[str, Any] = {
    "multi-label": ["The cat sat.", "A dog", ""],
    "classification": [["The cat.", "A dog."], ["was", "dark and dark"]],
    "regression": [["The cat.", "A dog."]],
    "tokens": ["The cat sat on it .", "dark"],
    "questions": [["Who sat?", "The cat sat."]],
    "choices": [["It was", "dark", "he"], ["She", "a", "it", "was"]],
}


@pytest.mark.parametrize("kind", ROWS)
def test_predictions_are_those_of_the_command(client: Client, folders: Path, kind: str) -> None:
    reply = client.post("/v1/bertcli/predict", {"model": kind, "rows": ROWS[kind]})
    assert reply.status == 200, reply.body
    expected = bertcli.load(folders / kind).predict(ROWS[kind])
    assert near(reply.json, json.loads(json.dumps(expected)))


def test_vectors_words_and_nearest_texts_are_those_of_the_commands(
    client: Client, folders: Path, run_bertcli: Bertcli
) -> None:
    def printed(*arguments: object) -> list[Any]:
        return [json.loads(line) for line in run_bertcli(*arguments, "--json")[1].splitlines()]

    texts = ["The cat sat.", "a dog", "it was dark of night"]
    reply = client.post("/v1/bertcli/embed", {"texts": texts})
    assert near(reply.json, printed("embed", folders / "vectors", *texts))
    reply = client.post("/v1/bertcli/embed", {"texts": texts[0], "model": "words"})
    assert near(reply.json, printed("embed", folders / "words", texts[0]))
    reply = client.post("/v1/bertcli/similarity", {"queries": texts[0], "texts": texts[1:], "top": 2})
    assert near(reply.json, printed("similarity", folders / "vectors", *texts))
    masked = ["The [MASK] sat.", "a [MASK] [MASK]"]
    reply = client.post("/v1/bertcli/fill-mask", {"texts": masked, "top_k": 3})
    assert near(reply.json, printed("predict-mask", folders / "words", *masked, "--top-k", 3))


def test_requests_with_other_numbers_of_words_are_computed_together(client: Client) -> None:
    def ask(top_k: int) -> Any:
        return client.post("/v1/bertcli/fill-mask", {"texts": "The [MASK] sat.", "top_k": top_k}).json[0]

    with ThreadPoolExecutor(8) as pool:
        for top_k, found in zip([1, 2, 3, 4] * 4, pool.map(ask, [1, 2, 3, 4] * 4), strict=True):
            assert len(found["masks"][0]["predictions"]) == top_k


def test_answers_of_low_probability_are_undecided(client: Client) -> None:
    body = {"model": "classification", "rows": ROWS["classification"], "min_probability": 1.0}
    assert [each["label"] for each in client.post("/v1/bertcli/predict", body).json] == [None, None]


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("predict", {"rows": ["a"], "model": "classification"}, "row 1: the model reads a pair of texts"),
        ("predict", {"rows": [["a", "b"]]}, "row 1: the model reads a text; found 2"),
        ("predict", {"rows": ["a"], "model": "red"}, "model: 'red' is not served here; give one of multi-"),
        (
            "predict",
            {"rows": ["a"], "model": "vectors"},
            "this is not a model that is fine-tuned: vectors answers",
        ),
        (
            "embed",
            {"texts": "a", "model": "tokens"},
            "not a model that gives vectors: tokens answers predict",
        ),
        ("fill-mask", {"texts": "a", "model": "vectors"}, "not a model that fills masks"),
        ("predict", {"rows": ["a"], "min_probability": 0.5}, "--min-probability is for classification"),
        ("fill-mask", {"texts": ["a [MASK]", "the cat"]}, "text 2: no [MASK] in 'the cat'"),
        ("fill-mask", {"texts": "a [MASK]", "top_k": 0}, "top_k: Input should be greater than or equal to 1"),
        (
            "fill-mask",
            {"texts": [" [MASK]" * 30] * 10, "top_k": 100},
            "300 masks with 100 words each: a request gets at most 20,000 of them; give a smaller top_k",
        ),
        ("predict", {"rows": ["a", 5]}, "rows[1]: Input should be a valid"),
        (
            "fill-mask",
            {"texts": "a [MASK]", "top_k": 101},
            "top_k: Input should be less than",
        ),
        (
            "similarity",
            {"queries": ["a" * 999] * 500, "texts": ["a"] * 500, "top": 500},
            "for each text: give",
        ),
        ("fill-mask", {"texts": "a [MASK]" + " a" * 40}, "text 1: 44 tokens with the special ones, but"),
        ("embed", {}, "texts: Field required"),
        ("embed", {"texts": []}, "texts: List should have at least 1 item"),
        ("embed", {"texts": [1] * 500_000}, "texts: Input should be a valid string"),
        ("embed", {"texts": ["a"] * 1025}, "texts: List should have at most 1024 items"),
        ("embed", {"texts": "a", "text": "b"}, "text: Extra inputs are not permitted"),
        ("embed", {f"key{number}": 1 for number in range(40)}, "the body has 40 keys"),
        ("embed", b"", "expected a JSON object"),
        ("embed", b"[1]", "expected a JSON object"),
        ("embed", b'{"texts": "\xff\xfe"}', "the body is not JSON: invalid unicode code point"),
        ("embed", b'{"texts": "\\ud800"}', "the body is not JSON"),
        ("embed", b'{"texts": "a"', "the body is not JSON: EOF"),
        ("embed", b"[" * 100_000, "the body is not JSON: recursion limit exceeded"),
        ("embed", b'{"texts": "a", "model": NaN}', "the body is not JSON"),
    ],
)
def test_bad_requests_have_the_messages_of_the_commands(
    client: Client, route: str, body: Any, message: str
) -> None:
    reply = client.post(f"/v1/bertcli/{route}", body)
    assert (reply.status, reply.json["error_type"]) == (422, "Validation")
    assert message in reply.json["error"]
    assert len(reply.body) < 700


def test_a_body_that_is_not_called_json_is_refused(client: Client) -> None:
    reply = client.post("/v1/bertcli/embed", {"texts": "a"}, Content_Type="text/plain")
    assert (reply.status, "Content-Type: application/json" in reply.json["error"]) == (422, True)


def test_many_clients_get_the_answers_to_their_own_texts(client: Client, folders: Path) -> None:
    texts = [
        " ".join(["cat", "dog", "the", "mat"][: 1 + number % 4]) + " sat" * (number % 9)
        for number in range(60)
    ]
    expected = bertcli.load(folders / "multi-label").predict(texts)

    def ask(text: str) -> Any:
        return client.post("/v1/bertcli/predict", {"rows": text}).json[0]

    with ThreadPoolExecutor(16) as pool:
        assert near(list(pool.map(ask, texts)), json.loads(json.dumps(expected)))


def test_what_shows_the_server_itself(client: Client) -> None:
    assert client.get("/health").status == 200
    info = client.get("/info").json
    assert [model["name"] for model in info["models"]] == list(NAMES)
    model = info["models"][0]
    assert (model["engine"], model["task"], model["answers"]) == ("bertcli", "classification", ["predict"])
    assert info["models"][-1]["answers"] == ["embed", "similarity", "fill-mask"]
    numbers = client.get("/metrics").body.decode()
    assert 'bertcli_requests_total{path="/health",status="200"}' in numbers
    assert "bertcli_waiting_texts 0.0" in numbers
    assert client.get("/nothing").status == 404
    assert client.get("/embed").status == 405
    assert 'path="other",status="404"' in client.get("/metrics").body.decode()


def test_the_page_of_routes_asks_no_other_server(client: Client) -> None:
    page = client.get("/docs").body.decode()
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "http://" not in page
    assert "https://" not in page
    schema = client.get("/openapi.json").json
    for path in schema["paths"]:
        assert path in page
    assert "min_probability" in page


def test_a_model_with_broken_weights_answers_500_with_the_reason(tmp_path: Path) -> None:
    saved_task(tmp_path / "task", "multi-label")
    served = open_served("task", tmp_path / "task", Compute("cpu", "fp32"), engine="bertcli")
    assert served.predictions is not None
    for parameter in served.predictions.runner.model.parameters():
        parameter.data.fill_(float("nan"))
    with serving([served]) as client:
        reply = client.post("/v1/bertcli/predict", {"rows": "a"})
        assert (reply.status, "NaN or infinite" in reply.json["error"]) == (500, True)


def test_a_fault_is_logged_without_the_text(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (served,) = opened(folders, "multi-label")

    def fail(*arguments: Any) -> Any:
        raise ValueError(f"secret: {arguments}")

    monkeypatch.setattr("bertcli.inference.serve.routes.row_json", fail)
    with serving([served]) as client:
        reply = client.post("/v1/bertcli/predict", {"rows": "my secret text"})
        assert (reply.status, reply.json["error"]) == (500, "internal error")
    said = capsys.readouterr().err
    assert "failed: ValueError at " in said
    assert "secret" not in said


def test_the_first_model_that_can_answer_is_asked(tmp_path: Path, folders: Path) -> None:
    saved_model(tmp_path / "other", seed=1)
    with serving([*opened(folders, "tokens", "vectors"), *opened(tmp_path, "other")]) as client:
        first, named, other = (
            client.post("/v1/bertcli/embed", {"texts": "a cat"} | chosen).json
            for chosen in ({}, {"model": "vectors"}, {"model": "other"})
        )
        assert first == named != other
