"""Requests as other programs send them: to text-embeddings-inference and to OpenAI. Errors, metrics."""

from __future__ import annotations

import base64
import traceback
from http import HTTPStatus
from typing import Annotated, Any, Literal

import torch
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException as StarletteError

from bertcli.inference.predict import Predicted
from bertcli.inference.serve.engine import Served
from bertcli.inference.serve.queue import MOST_WAITING, Batch, Failed, Overloaded, TooLong
from bertcli.inference.serve.routes import Models, Several, Texts, json_response, listed
from bertcli.system.errors import UserError
from bertcli.system.terminal import say

TEI, OPENAI = "text-embeddings-inference", "OpenAI"
OPENAI_PATH = "/v1/embeddings"

Row = Annotated[list[str], Field(min_length=1, max_length=2)]

_UNCUT = "shorten it, or let it be cut (truncate: true)"
"""What to do about a text that is too long, at the routes of text-embeddings-inference."""


class EmbedRequest(BaseModel):
    """Texts to embed. Vectors have length 1 unless `normalize` is false."""

    inputs: Texts
    truncate: bool | None = Field(None, description="Cut longer texts in place of refusing them.")
    normalize: bool = True


class Parameters(BaseModel):
    """What huggingface_hub's `text_classification` sends beside a text."""

    model_config = ConfigDict(extra="forbid")

    top_k: int | None = Field(None, ge=1)


class PredictRequest(BaseModel):
    """A text, a pair of texts, or a list of rows that hold one or two texts."""

    inputs: str | Row | Annotated[list[Row], Field(min_length=1, max_length=MOST_WAITING, fail_fast=True)]
    truncate: bool | None = Field(None, description="Cut longer texts in place of refusing them.")
    raw_scores: bool = Field(False, description="Give the model's outputs, not probabilities.")
    parameters: Parameters | None = Field(
        None, description="If it is there, the answer to one text is a list of one, as on the hub."
    )


class RerankRequest(BaseModel):
    """A query, and texts to be put in the order of their scores."""

    query: str
    texts: Several
    truncate: bool | None = Field(None, description="Cut longer texts in place of refusing them.")
    raw_scores: bool = Field(False, description="Give the model's output, not its sigmoid.")
    return_text: bool = False


class OpenAIRequest(BaseModel):
    """Texts to embed; lists of tokens are refused, because other models have other tokens."""

    input: Texts
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


def add_other_routes(router: APIRouter, models: Models) -> None:
    """Add the routes of text-embeddings-inference, which know no name of a model, and that of OpenAI.

    The first model that can answer is asked. `POST /` is the route of what the first model gives.
    """

    @router.post("/embed", tags=[TEI])
    async def embed(body: EmbedRequest) -> Response:
        """A vector for each text."""
        served = _fitting(models, "vectors", "model is not an embedding model")
        vectors = served.unit_vectors if body.normalize else served.raw_vectors
        found = await models.ask(vectors, listed(body.inputs), uncut="" if body.truncate else _UNCUT)
        return json_response([vector_D.tolist() for vector_D in found])

    @router.post("/predict", tags=[TEI])
    async def predict(body: PredictRequest) -> Response:
        """The labels of each text with their scores, the highest first."""
        served = _fitting(models, "scores_texts", "model is not a classifier model")
        several = isinstance(body.inputs, list) and isinstance(body.inputs[0], list)
        rows: Any = body.inputs if several else [listed(body.inputs)]  # pyright: ignore[reportArgumentType]
        found = await models.predict(served, rows, uncut="" if body.truncate else _UNCUT)
        most = None if body.parameters is None else body.parameters.top_k
        answers = [_labels(each, body.raw_scores)[:most] for each in found]
        return json_response(answers if several or body.parameters is not None else answers[0])

    @router.post("/rerank", tags=[TEI])
    async def rerank(body: RerankRequest) -> Response:
        """The numbers of the texts with their scores, the highest first."""
        served = _fitting(models, "ranks", "model is not a re-ranker model")
        rows = [[body.query, text] for text in body.texts]
        found = await models.predict(served, rows, uncut="" if body.truncate else _UNCUT)
        answers = []
        for number, each in enumerate(found):
            (score,) = each.prediction.label_scores(body.raw_scores).values()
            text = {"text": body.texts[number]} if body.return_text else {}
            answers.append({"index": number, **text, "score": score})
        return json_response(sorted(answers, key=lambda each: -each["score"]))

    first = next(iter(models.served.values()))
    kinds = {"ranks": rerank, "scores_texts": predict, "vectors": embed}
    if route := next((route for kind, route in kinds.items() if getattr(first, kind)), None):
        router.post("/", tags=[TEI])(route)

    @router.post(OPENAI_PATH, tags=[OPENAI])
    async def embeddings(body: OpenAIRequest) -> Response:
        """A vector of length 1 for each text."""
        served = _named(models, body.model)
        assert served.unit_vectors is not None
        hidden = served.unit_vectors.embedder.model.architecture.hidden
        if body.dimensions not in (None, hidden):
            raise UserError(f"dimensions: the vectors of {served.name} have {hidden} numbers; leave it out")
        found = await models.queue.ask(served.unit_vectors, listed(body.input), uncut="shorten it")
        tokens = sum(each.tokens for each in found)
        data = [
            {"object": "embedding", "index": number, "embedding": _spelled(each.value, body.encoding_format)}
            for number, each in enumerate(found)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return json_response({"object": "list", "data": data, "model": served.name, "usage": usage})


def _fitting(models: Models, kind: str, message: str) -> Served:
    """The first model of a kind. Raises the error of text-embeddings-inference if there is none."""
    found = next((served for served in models.served.values() if getattr(served, kind)), None)
    if found is None:
        raise HTTPException(HTTPStatus.FAILED_DEPENDENCY, message)
    return found


def _named(models: Models, name: str | None) -> Served:
    """The model to embed with: a program may give a single model any name, such as OpenAI's own."""
    if name is not None and name not in models.served and len(models.served) > 1:
        known = ", ".join(each.name for each in models.served.values() if each.vectors)
        raise HTTPException(
            HTTPStatus.NOT_FOUND, f"the model {name!r} is not served here; give one of {known}"
        )
    return models.find(name if name in models.served else None, lambda each: each.vectors, "gives vectors")


def _labels(answer: Predicted, raw: bool) -> list[dict[str, Any]]:
    scores = sorted(answer.prediction.label_scores(raw).items(), key=lambda each: -each[1])
    return [{"score": score, "label": label} for label, score in scores]


def _spelled(vector_D: torch.Tensor, encoding: str) -> list[float] | str:
    """The vector as numbers, or as the base64 of its float32 numbers in little-endian order."""
    if encoding == "float":
        return vector_D.tolist()
    return base64.b64encode(vector_D.numpy().astype("<f4", copy=False).tobytes()).decode()


class Metrics:
    """The numbers of `/metrics`."""

    def __init__(self) -> None:
        disable_created_metrics()
        own = self.registry = CollectorRegistry()
        labels = ("path", "status")
        self.requests = Counter("bertcli_requests", "Requests by path and status.", labels, registry=own)
        self.seconds = Histogram(
            "bertcli_request_seconds", "Seconds from the headers of a request to its answer.", registry=own
        )
        self.texts = Histogram(
            "bertcli_batch_texts",
            "Texts that were computed together.",
            registry=own,
            buckets=[1 << power for power in range(9)],
        )
        self.tokens = Counter("bertcli_tokens", "Tokens that were computed.", registry=own)
        self.busy = Counter("bertcli_computing_seconds", "Seconds of computation.", registry=own)
        self.cut = Counter("bertcli_cut_tokens", "Tokens of long texts that no model read.", registry=own)
        self.waiting = Gauge("bertcli_waiting_texts", "Texts that wait.", registry=own)

    def see(self, batch: Batch) -> None:
        """Count a batch."""
        self.texts.observe(batch.texts)
        self.tokens.inc(batch.tokens)
        self.busy.inc(batch.seconds)
        self.cut.inc(batch.dropped)


def log_failure(error: BaseException | None) -> None:
    """Say that there was an error, and where. Its message is left out: it may hold a text.

    `error`: None, where the event loop reports a fault without an error.
    """
    places = traceback.extract_tb(error and error.__traceback__)
    where = f" at {places[-1].filename}:{places[-1].lineno}" if places else ""
    say(f"failed: {type(error).__name__ if error else 'a connection'}{where}")


def refusal(path: str, status: int, message: str, **headers: str) -> Response:
    """An error as the program expects it that asks at this path."""
    if path == OPENAI_PATH:
        kind = "invalid_request_error" if status < 500 else "server_error"
        value: Any = {"error": {"message": message, "type": kind, "param": None, "code": status}}
    else:
        kinds = {413: "Validation", 422: "Validation", 424: "Backend", 429: "Overloaded", 500: "Backend"}
        value = {"error": message, "error_type": kinds.get(status, HTTPStatus(status).phrase)}
    response = json_response(value)
    response.status_code = status
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return response


def refused(path: str, error: Exception) -> Response:
    """The response to a request that raised an error."""
    match error:
        case TooLong():
            return refusal(path, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error))
        case UserError():
            return refusal(path, HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        case Overloaded():
            message = "too many texts wait already; ask again later"
            return refusal(path, HTTPStatus.TOO_MANY_REQUESTS, message, retry_after=str(error.seconds))
        case Failed():
            return refusal(path, HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        case StarletteError():
            return refusal(path, error.status_code, str(error.detail), **(dict(error.headers or {})))
    log_failure(error)
    return refusal(path, HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")


def refuse_errors(app: FastAPI) -> None:
    """Let an application answer errors by `refused`."""

    async def refuse(request: Request, error: Exception) -> Response:
        return refused(request.url.path, error)

    for kind in (UserError, Overloaded, Failed, StarletteError, Exception):
        app.add_exception_handler(kind, refuse)
