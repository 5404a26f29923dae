"""Requests with the objects of `--json`: their bodies, and the answers of the models that are asked."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl

import torch
from fastapi import APIRouter, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json, to_json

from bertcli.inference.inputs import example_of
from bertcli.inference.lines import Line
from bertcli.inference.outputs import beside, row_json
from bertcli.inference.predict import Answers, Predicted
from bertcli.inference.serve.engine import Served
from bertcli.inference.serve.queue import MOST_WAITING, Queue
from bertcli.inference.vectors import nearest
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample

MOST_CHARACTERS = 16_000_000
"""Most characters of an answer that repeats texts."""
MOST_WORDS = 20_000
"""Most words of an answer that fills masks."""
MOST_KEYS = 32
"""Most keys of a body, far more than any request has; each wrong one would be an error of its own."""
OURS = "/v1/bertcli"

Several = Annotated[list[str], Field(min_length=1, max_length=MOST_WAITING, fail_fast=True)]
Texts = str | Several
Rows = Annotated[list[str | Several], Field(min_length=1, max_length=MOST_WAITING, fail_fast=True)]


class Route(NamedTuple):
    """A path that takes JSON: what its body must be, and the function that answers it.

    The server calls it at once: by way of FastAPI, which describes it, an answer would take longer.
    """

    kind: type[BaseModel]
    answer: Callable[[Any], Awaitable[Response]]

    async def __call__(self, content_type: bytes, body: bytes) -> Response:
        """The response to a body. Raises `UserError` for another one than expected."""
        return await self.answer(self._read(content_type, body))

    def _read(self, content_type: bytes, body: bytes) -> BaseModel:
        is_json = content_type.partition(b";")[0].strip().lower().endswith((b"/json", b"+json"))
        try:
            value = from_json(body, allow_inf_nan=False) if is_json and body else None
        except ValueError as error:
            raise UserError(f"the body is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise UserError("expected a JSON object, sent with Content-Type: application/json; see /docs")
        if len(value) > MOST_KEYS:
            raise UserError(f"the body has {len(value):,} keys; /docs has those it takes")
        try:
            return self.kind.model_validate(value)
        except ValidationError as error:
            raise UserError(_problems(error)) from None


def _problems(error: ValidationError) -> str:
    """The first problems of a body, without its values."""
    lines = []
    for each in error.errors(include_input=False, include_url=False)[:5]:
        name, *inner = each["loc"]
        places = "".join(f"[{part}]" for part in inner if isinstance(part, int))  # other parts name types
        lines.append(f"{name}{places}: {each['msg']}")
    return "; ".join(dict.fromkeys(lines))


def routes_of(router: APIRouter) -> dict[str, Route]:
    """The routes of a router, whose functions have one argument each, `body`; by their paths."""
    functions = {route.path: route.endpoint for route in router.routes if isinstance(route, APIRoute)}
    return {
        path: Route(inspect.get_annotations(function, eval_str=True)["body"], function)
        for path, function in functions.items()
    }


def json_response(value: Any) -> Response:
    """The response with a value as JSON, which FastAPI does not look through again."""
    return Response(to_json(value), media_type="application/json")


@dataclass(frozen=True)
class Models:
    """The models of a server by name, and the queue of what they are asked."""

    served: Mapping[str, Served]
    queue: Queue

    def find(self, name: str | None, fits: Callable[[Served], Any], what: str) -> Served:
        """The model of that name, or the first one that fits for None.

        Raises `UserError` if there is none, or it does not fit; `what`: what it would have to do, in words.
        """
        if name is not None and name not in self.served:
            raise UserError(f"model: {name!r} is not served here; give one of {', '.join(self.served)}")
        asked = list(self.served.values()) if name is None else [self.served[name]]
        found = next((served for served in asked if fits(served)), None)
        if found is None:
            others = "; ".join(f"{served.name} answers {', '.join(served.kinds)}" for served in asked)
            where = "no model here" if name is None else "this is not a model that"
            raise UserError(f"{where} {what}: {others}")
        return found

    async def ask(self, answers: Answers | None, questions: Sequence[Any], uncut: str = "") -> list[Any]:
        """The values of the answers (`Queue.ask`)."""
        assert answers is not None
        return [each.value for each in await self.queue.ask(answers, questions, uncut)]

    async def predict(
        self, served: Served, rows: Sequence[Sequence[str]], uncut: str = ""
    ) -> list[Predicted]:
        """The answer of a fine-tuned model to each row of texts."""
        assert served.predictions is not None
        settings = served.predictions.runner.task.settings
        examples = [
            example_of(row, f"row {number}", settings, how="as a list")
            for number, row in enumerate(rows, start=1)
        ]
        return await self.ask(served.predictions, examples, uncut)


class Asking(BaseModel):
    """What every body of ours may have."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(None, description="The name of the model. Default: the first that can answer.")


class PredictBody(Asking):
    """Rows for a fine-tuned model."""

    rows: str | Rows = Field(
        description="A text, or a list of rows. A row is a text, or the list of its texts: a pair, a "
        "question and its context, a text and its choices."
    )
    min_probability: float = Field(
        0.0, ge=0, le=1, description="Leave answers with a lower probability undecided: their label is null."
    )


class EmbedBody(Asking):
    """Texts that each get a vector."""

    texts: Texts = Field(description="A text, or a list of texts.")


class FillBody(Asking):
    """Texts with masks."""

    texts: Texts = Field(description="A text with masks in it, or a list of such texts.")
    top_k: int = Field(5, ge=1, le=100, description="Number of words for each mask.")


class SimilarityBody(Asking):
    """Texts to compare with queries."""

    queries: Texts = Field(description="A text, or a list of texts.")
    texts: Texts = Field(description="The texts that each query is compared with.")
    top: int = Field(10, ge=1, description="Number of texts for each query.")


@dataclass(frozen=True)
class Asked:
    """The content of a form of the page.

    Attributes:
        texts: the fields that hold a text each.
        lines: the lines of the field that holds several texts.
        show: the parts that are to be shown with the answer.
        part: the one part that the script asks for; "": a browser without it asks for a full page.
    """

    model: str | None = None
    form: str = ""
    texts: Sequence[str] = ()
    lines: Sequence[str] = ()
    show: Sequence[str] = ()
    part: str = ""

    @classmethod
    def of(cls, body: bytes) -> Asked:
        """The content of a body as HTML's forms send it. Raises `UserError` for anything else."""
        try:
            pairs = parse_qsl(body.decode(), True, errors="strict", max_num_fields=MOST_KEYS)
        except ValueError as error:
            raise UserError(f"the body is no form in UTF-8: {error}") from None
        given: dict[str, list[str]] = {}
        for name, value in pairs:
            given.setdefault(name, []).append(value.replace("\r\n", "\n"))
        model, form, part = (given.get(name, [""])[0] for name in ("model", "form", "part"))
        lines = [line for value in given.get("lines", ()) for line in value.split("\n") if line.strip()]
        if len(lines) > MOST_WAITING:
            raise UserError(f"{len(lines):,} lines; give at most {MOST_WAITING:,}")
        return cls(model or None, form, given.get("text", ()), lines, show=given.get("show", ()), part=part)


def listed(texts: str | list[str]) -> list[str]:
    """The texts as a list."""
    return [texts] if isinstance(texts, str) else texts


def add_routes(router: APIRouter, models: Models) -> None:
    """Add our routes."""

    @router.post(f"{OURS}/predict", tags=["bertcli"])
    async def predict(body: PredictBody) -> Response:
        """The objects of `bertcli predict --json`, one for each row."""
        served = models.find(body.model, lambda each: each.predictions, "is fine-tuned")
        rows = [listed(row) for row in listed(body.rows)]  # pyright: ignore[reportArgumentType]
        found = await models.predict(served, rows)
        return json_response([_decided(each, body.min_probability) for each in found])

    @router.post(f"{OURS}/embed", tags=["bertcli"])
    async def embed(body: EmbedBody) -> Response:
        """The objects of `bertcli embed --json`, one for each text."""
        served = models.find(body.model, lambda each: each.vectors, "gives vectors")
        texts = listed(body.texts)
        vectors = await models.ask(served.vectors, texts)
        pairs = zip(texts, vectors, strict=True)
        return json_response([{"text": text, "vector": vector_D.tolist()} for text, vector_D in pairs])

    @router.post(f"{OURS}/fill-mask", tags=["bertcli"])
    async def fill_mask(body: FillBody) -> Response:
        """The objects of `bertcli predict-mask --json`, one for each text."""
        served = models.find(body.model, lambda each: each.masks, "fills masks")
        assert served.masks is not None
        lines = [Line(text, f"text {number}") for number, text in enumerate(listed(body.texts), start=1)]
        masks = sum(map(served.masks.filler.count, lines))
        if masks * body.top_k > MOST_WORDS:
            raise UserError(
                f"{masks:,} masks with {body.top_k:,} words each: a request gets at most {MOST_WORDS:,} of "
                "them; give a smaller top_k, or send the texts in several requests"
            )
        found = await models.ask(served.masks, [(line, body.top_k) for line in lines])
        return json_response([each.as_json() for each in found])

    @router.post(f"{OURS}/similarity", tags=["bertcli"])
    async def similarity(body: SimilarityBody) -> Response:
        """The objects of `bertcli similarity --json`: for each query the nearest texts, the nearest first."""
        served = models.find(body.model, lambda each: each.vectors, "gives vectors")
        queries, texts = listed(body.queries), listed(body.texts)
        longest = max(map(len, queries)) + max(map(len, texts)) + 100  # names and numbers
        if len(queries) * min(body.top, len(texts)) * longest > MOST_CHARACTERS:
            raise UserError(
                f"the answer could have more than {MOST_CHARACTERS:,} characters, as it repeats the query "
                "for each text: give a smaller top, or send the queries in several requests"
            )
        vectors_ND = torch.stack(await models.ask(served.vectors, [*queries, *texts]))
        return json_response(await asyncio.to_thread(ranked, queries, texts, vectors_ND, top=body.top))


def _decided(answer: Predicted, least: float) -> dict[str, Any]:
    prediction = answer.prediction.decided(least) if least else answer.prediction
    return row_json(Predicted(answer.example, prediction, answer.items))


def ranked(
    queries: Sequence[str], texts: Sequence[str], vectors_ND: torch.Tensor, top: int
) -> list[dict[str, Any]]:
    """The nearest texts to each query, as `bertcli similarity --json` prints them.

    `vectors_ND` has the vectors of the queries, then those of the texts.
    """
    examples = [
        TextExample(f"text {number}", {"text": text}, (text,), label=None)
        for number, text in enumerate(texts, start=1)
    ]
    vectors = iter(vectors_ND[len(queries) :])
    found = nearest(
        vectors_ND[: len(queries)],
        examples,
        lambda some: torch.stack([next(vectors) for _ in some]),
        batch_size=len(examples),
        top=top,
    )
    answers = []
    for query, some in zip(queries, found, strict=True):
        for rank, near in enumerate(some, start=1):
            where = {"query": query, "rank": rank, "similarity": near.similarity, "where": near.example.where}
            answers.append(beside(near.example.columns, where))
    return answers
