"""The page at `/`: a form for each kind of question to each model, and answers to look at, as HTML."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import Any, NamedTuple

import torch
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from bertcli.folders.model_folder import load_encoder_folder
from bertcli.folders.sentence_transformers import read_pooling
from bertcli.folders.task_folder import load_task_folder
from bertcli.inference.attention import attention_of
from bertcli.inference.attributions import Decision, InParts, Parts, Work, attribute_in_parts, decide
from bertcli.inference.fill_mask import USUAL_MASK
from bertcli.inference.inputs import example_of
from bertcli.inference.lines import Line
from bertcli.inference.predict import Runner, runner_of
from bertcli.inference.serve.engine import Served
from bertcli.inference.serve.other_routes import refused
from bertcli.inference.serve.queue import Answer, Failed, Overloaded
from bertcli.inference.serve.routes import OURS, Asked, Models, ranked
from bertcli.reports.attention import SCRIPTS, heads_section, why_section
from bertcli.reports.page import content_policy, fragment, page
from bertcli.system.errors import UserError
from bertcli.tasks.examples import Example
from bertcli.tasks.row_words import ReadRow, read_texts
from bertcli.tasks.shown import ShownAnswer
from bertcli.tokenizer.pieces import BLANK

PATH = f"{OURS}/page"
_TEMPLATE, _SCRIPTS = "serve.html.j2", (*SCRIPTS, "serve.js")
MOST_TOKENS, MOST_ROWS, TOP_K = 64, 16, 10
"""Most tokens of a row that is explained; most rows, one of which is explained; words for each mask."""


class Field(NamedTuple):
    """A field of a form: its name in the body (`Asked`), its label, and a hint beside it."""

    name: str
    label: str
    hint: str = ""


_Given = tuple[ShownAnswer, Sequence[Sequence[tuple[str, float]]], Sequence[Answer]]


class Form(ABC):
    """One kind of question to one model.

    Attributes:
        is_for_vectors: whether the model was trained for vectors.
        kind: the route of ours that gives the same answer; `what`: the same in words.
        source: the attribute of `Served` with the answers.
        listed: the heading of a table of answers.
        parts: what can be shown beside the answer: name -> title. It is empty without weights.
    """

    kind: str
    what: str
    source: str
    listed: str
    fields: Sequence[Field]
    labels: Sequence[str] = ()
    attention = "Attention"
    _in_parts = InParts()

    def __init__(self, models: Models, served: Served) -> None:
        self.models, self.served = models, served
        self.answers: Any = getattr(served, self.source)
        self.parts = {"attention": self.attention} if served.has_weights else {}
        self.is_for_vectors = read_pooling(served.folder) is not None

    @abstractmethod
    async def answer(self, asked: Asked) -> _Given:
        """The answer, tables of answers with a number each, and what the queue gave. Raises `UserError`."""

    @abstractmethod
    def read(self, asked: Asked) -> ReadRow:
        """The row whose attention is shown. Raises `UserError` for one that cannot be read."""

    @cached_property
    def reader(self) -> Any:
        """An `Embedder` or a `Runner` with weights; they are read now if onnxruntime computes the answers."""
        assert self.served.vectors is not None
        embedder = self.served.vectors.embedder
        if self.served.engine == "bertcli":
            return embedder
        model, tokenizer = load_encoder_folder(self.served.folder)
        return replace(embedder, model=model.to(self.served.device), tokenizer=tokenizer)

    async def part(self, name: str, asked: Asked) -> str:
        """The HTML of `answer`, or of one of `parts`; if this cannot be shown, the reason."""
        if name == "answer":
            shown, tables, found = await self.answer(asked)
            values = {"form": self, "shown": shown, "tables": tables, "found": found}
            return fragment(_TEMPLATE, values, "answer")
        if name not in self.parts:
            raise UserError(f"part: {name!r} is not shown here; give one of answer, {', '.join(self.parts)}")
        work = Work(self.steps(name, asked))
        try:
            while work.made is None:
                await self.models.ask(self._in_parts, [work])
        except UserError as error:
            return fragment(_TEMPLATE, {"title": self.parts[name], "reason": error, "part": name}, "missing")
        return work.made

    def steps(self, name: str, asked: Asked) -> Parts[str]:
        """The computation of one of `parts`, as HTML."""
        read, reader = self.read(asked), self.reader
        _check([read.row.length])
        yield read.row.length
        found = attention_of(reader.model.body, reader.tokenizer, read)
        return heads_section(self.served.name, found)


class Predicting(Form):
    """A row for a fine-tuned model. What each word adds to the answer can be shown."""

    kind, source, listed = "predict", "predictions", "answer"

    def __init__(self, models: Models, served: Served) -> None:
        super().__init__(models, served)
        task = self.answers.runner.task
        self.settings, self.what = task.settings, task.type
        self.labels = task.labels if served.scores_texts else ()
        self.parts = {"why": "Which words decided", **self.parts} if self.parts else {}
        self.fields = [Field("text", name) for name in task.text_names(task.settings)]
        if task.has_choices:
            self.fields.append(Field("lines", "choices", "one a line"))

    @cached_property
    def reader(self) -> Runner:
        if self.served.engine == "bertcli":
            return self.answers.runner
        return runner_of(load_task_folder(self.served.folder), self.served.device)

    def example(self, asked: Asked) -> Example:
        """The row. Raises `UserError` for another number of texts than the model reads."""
        texts, how = [*asked.texts, *asked.lines], "each choice on a line of its own"
        return example_of(texts, "this row", self.settings, how=how)

    async def answer(self, asked: Asked) -> _Given:
        (found,) = await self.models.queue.ask(self.answers, [self.example(asked)])
        shown = found.value.prediction.display(found.value.example)
        return shown, [shown.probabilities], [found]

    def decided(self, asked: Asked) -> Decision:
        """The answer of the weights, and the row that gives it. Raises `UserError` for long rows."""
        task, tokenizer = self.reader.task, self.reader.tokenizer
        (example,) = task.at_words([self.example(asked)], task.settings, tokenizer)
        _check([row.length for item in task.encode([example], tokenizer) for row in item.rows])
        return decide(self.reader, example)

    def read(self, asked: Asked) -> ReadRow:
        return self.decided(asked).read

    def steps(self, name: str, asked: Asked) -> Parts[str]:
        if name != "why":
            return (yield from super().steps(name, asked))
        decision = self.decided(asked)
        found = yield from attribute_in_parts(self.reader, decision)
        return why_section(found, decision.read.words)


class Filling(Form):
    """A text with masks."""

    kind, what, source, listed = "fill-mask", "masked words", "masks", "word"
    fields = (Field("text", "text", f"with {USUAL_MASK} for each word that the model shall find"),)

    async def answer(self, asked: Asked) -> _Given:
        (found,) = await self.models.queue.ask(self.answers, [(_line(asked), TOP_K)])
        masks = found.value.masks
        words = [[(each.token.removeprefix(BLANK), each.probability) for each in mask] for mask in masks]
        return ShownAnswer(found.value.filled), words, [found]

    def read(self, asked: Asked) -> ReadRow:
        return self.answers.filler.read(_line(asked))


class Comparing(Form):
    """A query, and texts that are near to it or not."""

    kind, what, source, listed = "similarity", "similar texts", "vectors", "text"
    fields = (Field("text", "query"), Field("lines", "texts", "one a line"))
    attention = "Attention in the query"

    async def answer(self, asked: Asked) -> _Given:
        query, texts = asked.texts[:1], asked.lines
        if not query or not texts:
            raise UserError("give a query, and texts to compare it with, one a line")
        found = await self.models.queue.ask(self.answers, [*query, *texts])
        near = ranked(query, texts, torch.stack([each.value for each in found]), top=len(texts))
        return ShownAnswer(""), [[(each["text"], each["similarity"]) for each in near]], found

    def read(self, asked: Asked) -> ReadRow:
        return read_texts(self.reader.tokenizer, asked.texts[:1] or [""], self.served.longest)


def _line(asked: Asked) -> Line:
    return Line("".join(asked.texts[:1]), "this text")


def _check(lengths: Sequence[int]) -> None:
    """Raise `UserError` if rows are too long, or too many, to be explained."""
    for size, most, what in ((max(lengths), MOST_TOKENS, "tokens"), (len(lengths), MOST_ROWS, "rows")):
        if size > most:
            mend = "shorten the text, or use bertcli attention"
            raise UserError(f"this is shown for up to {most} {what}, and here are {size:,}: {mend}")


class Pages:
    """The documents. `needs_key`: nothing of a model is shown to those who have sent no key."""

    def __init__(self, models: Models, version: str, needs_key: bool) -> None:
        self.models, self.version, self.needs_key = models, version, needs_key
        self.forms: list[Form] = [
            kind(models, served)
            for served in models.served.values()
            for kind in (Predicting, Filling, Comparing)
            if kind.kind in served.kinds
        ]

    def find(self, asked: Asked) -> Form:
        """The form that is asked for, or the first one of its model. Raises `UserError` without the model."""
        served = self.models.find(asked.model, lambda each: True, "answers")
        own = [form for form in self.forms if form.served is served]
        return next((form for form in own if form.kind == asked.form), own[0])

    def form(self, form: Form | None, asked: Asked, problem: str = "") -> dict[str, Any]:
        """The values of the block `form`, filled with what was asked."""
        values = {"forms": self.forms, "path": PATH, "most_tokens": MOST_TOKENS}
        return {**values, "form": form, "asked": asked, "problem": problem}

    def document(self, values: dict[str, Any], answers: Sequence[str] = (), status: int = 200) -> Response:
        """The full page with the values of a form."""
        values |= {"version": self.version, "needs_key": self.needs_key, "answers": map(Markup, answers)}
        return _html(page("Ask a model", _TEMPLATE, values, scripts=_SCRIPTS, asks=True), status)

    def unasked(self, asked: Asked) -> Response:
        """The page before something was asked."""
        if self.needs_key:
            return self.document(self.form(None, asked))
        try:
            return self.document(self.form(self.find(asked), asked))
        except UserError as error:  # a model that is not here
            return self.document(self.form(self.forms[0], asked, str(error)), status=HTTPStatus.NOT_FOUND)

    async def answer(self, asked: Asked) -> Response:
        """The part that the script asks for; without it the full page, with a problem beside the fields."""
        if asked.part:
            return _html(await self.find(asked).part(asked.part, asked))
        form = self.find(asked)
        try:
            answers = [await form.part(name, asked) for name in ("answer", *asked.show)]
        except (UserError, Failed, Overloaded) as error:
            refusal = refused(PATH, error)
            problem = json.loads(bytes(refusal.body))["error"]
            return self.document(self.form(form, asked, problem), status=refusal.status_code)
        return self.document(self.form(form, asked), answers)


def _html(text: str, status: int = 200) -> Response:
    """The response; the browser keeps no copy, and loads nothing from elsewhere."""
    policy = f"{content_policy(_SCRIPTS, asks=True)}; frame-ancestors 'none'"
    others = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    return HTMLResponse(text, status, {"Content-Security-Policy": policy, **others})


def add_page(app: FastAPI, models: Models, needs_key: bool) -> None:
    """Add the page, and the route at which it asks."""
    pages = Pages(models, app.version, needs_key)

    def asked(request: Request) -> Asked:
        given = request.query_params
        return Asked(given.get("model"), given.get("form", ""), show=("why",))

    @app.get("/", include_in_schema=False)
    async def show(request: Request) -> Response:
        return pages.unasked(asked(request))

    @app.get(PATH, include_in_schema=False)
    async def show_form(request: Request) -> Response:
        form = pages.find(asked(request))
        return _html(fragment(_TEMPLATE, pages.form(form, asked(request)), "form"))

    @app.post(PATH, include_in_schema=False)
    async def answer(request: Request) -> Response:
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise HTTPException(HTTPStatus.FORBIDDEN, "a page of another site sends this form")
        return await pages.answer(Asked.of(bytes(request.scope["body"])))
