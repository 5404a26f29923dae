"""Requests a second and their time: `bertcli serve`, a plain route of another library, bare onnxruntime.

    python scripts/bench/serve.py MODEL [--seconds 5] [--rounds 3] [--clients 1 8 64] [--python PYTHON]
        [--classifier DIR]

MODEL is a folder of sentence vectors; --classifier a fine-tuned model, which is measured too. Each client
asks for one text of the bundled messages at a time, over one connection that stays open; the clients are
threads of one process of their own, and write to bare sockets, to leave the cores to the servers. PYTHON is
an interpreter with sentence-transformers, fastapi and uvicorn: it serves MODEL by a plain route, a thread a
request. With one client, onnxruntime alone reads the same texts from the ONNX file that `bertcli serve`
keeps: in a loop without a server, and behind a loop around one socket, the least server that there can be.
In each round all of them are measured, one after the other; printed are the medians of requests a second,
p50 and p99.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.check.serve_load import server

PEER_PORT = 8901
PEER = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(sys.argv[1], device="cpu")
app = FastAPI()

class Body(BaseModel):
    inputs: list[str]

@app.post("/embed")
def embed(body: Body):
    return model.encode(body.inputs, show_progress_bar=False).tolist()

@app.get("/health")
def health():
    return {}

uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""


class Bare:
    """onnxruntime alone: a text -> its vector, or its logits, as JSON."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(256)
        self._session = onnxruntime.InferenceSession(str(folder / "onnx" / "model.onnx"))
        self._names = [each.name for each in self._session.get_inputs()]

    def answer(self, text: str) -> bytes:
        """The numbers for a text, of length 1 as a vector."""
        row = self._tokenizer.encode(text)
        given = {
            "input_ids": row.ids,
            "attention_mask": row.attention_mask,
            "token_type_ids": row.type_ids,
        }
        feeds = {name: np.array([given[name]]) for name in self._names}
        output: Any = self._session.run(None, feeds)[0]
        vector = output.mean(axis=1) if output.ndim == 3 else output
        return json.dumps((vector / np.linalg.norm(vector)).tolist()).encode()


def loop(folder: Path, texts: Sequence[str], seconds: float) -> list[float]:
    """The seconds of each text, in a loop."""
    bare, taken, begun = Bare(folder), list[float](), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        bare.answer(texts[len(taken) % len(texts)])
        taken.append(time.perf_counter() - start)
    return taken


def serve_bare(folder: Path, listening: socket.socket) -> None:
    """Answer one client after the other, for ever."""
    bare = Bare(folder)
    while True:
        with listening.accept()[0] as client:
            while request := receive(client):
                answer = bare.answer(json.loads(request)["inputs"])
                client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(answer), answer))


def receive(connection: socket.socket) -> bytes:
    """The body of the next request or answer; empty at the end. An answer without status 200 is an error."""
    read = b""
    while True:
        head, end, body = read.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length:")[2].split()[0]):
            if head.startswith(b"HTTP") and b" 200 " not in head[:16]:
                raise SystemExit(read.decode())
            return body
        part = connection.recv(1 << 16)
        if not part:
            return b""
        read += part


def ask(port: int, path: str, bodies: Sequence[str], seconds: float, clients: int) -> list[float]:
    """The seconds of each request of all clients."""
    taken: list[float] = []
    ends = time.perf_counter() + seconds
    requests = [
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body.encode())}\r\n\r\n{body}".encode()
        for body in bodies
    ]

    def work(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while time.perf_counter() < ends:
                number += 1
                start = time.perf_counter()
                connection.sendall(requests[number % len(requests)])
                receive(connection)
                taken.append(time.perf_counter() - start)

    threads = [threading.Thread(target=work, args=(number * 7,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return taken


@contextmanager
def peer(python: str, model: Path, port: int) -> Iterator[None]:
    """The other library's server."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write(PEER)
        program.flush()
        process = subprocess.Popen([python, program.name, str(model), str(port)])
        try:
            while True:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                    connection.request("GET", "/health")
                    connection.getresponse().read()
                    break
                except OSError:
                    if process.poll() is not None:
                        raise SystemExit("the other server did not start") from None
                    time.sleep(0.2)
            yield
        finally:
            process.terminate()
            process.wait()


class Way(NamedTuple):
    """A way to get answers: its name, the route, and a function of clients and seconds -> each request's
    seconds; `most` clients can ask at once."""

    name: str
    route: str
    take: Callable[[int, float], list[float]]
    most: int = 1_000


def in_a_process(folder: Path, texts: Sequence[str], _clients: int, seconds: float) -> list[float]:
    """The seconds of each text with onnxruntime alone, in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(loop, (folder, texts, seconds))


@contextmanager
def process(work: Callable[..., None], *given: Any) -> Iterator[None]:
    """A process that works until the end of the context."""
    worker = multiprocessing.get_context("spawn").Process(target=work, args=given, daemon=True)
    worker.start()
    try:
        yield
    finally:
        worker.terminate()
        worker.join()


@contextmanager
def ways(given: argparse.Namespace, texts: Sequence[str]) -> Iterator[list[Way]]:
    """All ways, whose servers run."""
    from bertcli.inference.serve import engine

    found: list[Way] = []
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(1))

        def add(name: str, port: int, path: str, body: Callable[[str], Any], most: int = 1_000) -> None:
            bodies = [json.dumps(body(text)) for text in texts]

            def take(clients: int, seconds: float) -> list[float]:
                return pool.apply(ask, (port, path, bodies, seconds, clients))

            take(min(8, most), 1.0)  # to warm up
            found.append(Way(name, path, take, most))

        for model in filter(None, (given.model, given.classifier)):
            served = server(f"bench={model}", "--engine", given.engine)
            _, port, _said = stack.enter_context(served)
            name, embeds = f"bertcli serve, {info(port)['engine']}", model == given.model
            if embeds:
                add(name, port, "/embed", lambda text: {"inputs": [text], "truncate": True})
            else:
                add(name, port, "/predict", lambda text: {"inputs": text})
            kept = engine._exported(model, embeds, None)
            if kept is not None:
                route = "/embed" if embeds else "/predict"
                alone = partial(in_a_process, kept, texts)
                found.append(Way("onnxruntime in a loop", route, alone, most=1))
                listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
                stack.enter_context(process(serve_bare, kept, listening))
                name, port = "onnxruntime, the least server", listening.getsockname()[1]
                add(name, port, route, lambda text: {"inputs": text}, most=1)
        if given.python:
            stack.enter_context(peer(given.python, given.model, PEER_PORT))
            name = "sentence-transformers, a plain route"
            add(name, PEER_PORT, "/embed", lambda text: {"inputs": [text]})
        yield found


def info(port: int) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/info")
    return json.loads(connection.getresponse().read())["models"][0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--python")
    parser.add_argument("--classifier", type=Path)
    parser.add_argument("--engine", default="auto")
    given = parser.parse_args()
    from bertcli.config.section import Decoding
    from bertcli.corpus.streams import read_lines
    from bertcli.tasks.files import find_labeled_file

    _, *lines = read_lines(find_labeled_file("sms-spam"), Decoding())
    texts = [line.split("\t")[-1] for line in lines[:512]]
    rounds: dict[tuple[str, str, int], list[list[float]]] = {}
    with ways(given, texts) as found:
        for _ in range(given.rounds):
            for clients in given.clients:
                for way in found:
                    if clients <= way.most:
                        key = (way.route, way.name, clients)
                        rounds.setdefault(key, []).append(way.take(clients, given.seconds))
    print("| route | server | clients | requests/s | p50, ms | p99, ms |\n|---|---|---|---|---|---|")
    for (route, name, clients), taken in sorted(rounds.items(), key=lambda each: (each[0][0], each[0][2])):
        figures = [
            [len(some) / given.seconds, *(1000 * statistics.quantiles(some, n=100)[at] for at in (49, 98))]
            for some in taken
        ]
        shown = (f"{statistics.median(each):,.1f}" for each in zip(*figures, strict=True))
        print(f"| {route} | {name} | {clients} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
