"""Requests a second and their time: `bertcli serve`, a plain route of another library, bare onnxruntime.

    python scripts/bench/serve.py MODEL [--seconds 10] [--clients 1 8 64] [--python PYTHON] [--classifier DIR]

MODEL is a folder of sentence vectors; --classifier a fine-tuned model, which is measured too. Each client
asks for one text of the bundled messages at a time, over one connection that stays open; the clients are
threads of one process of their own. PYTHON is an interpreter with sentence-transformers, fastapi and
uvicorn: it serves MODEL by a plain route, a thread a request. With one client, onnxruntime alone reads the
same texts in a process, without any server, from the ONNX file that `bertcli serve` keeps. Rows: requests a
second, p50 and p99 in ms.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.check.serve_load import server

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
BARE = """
import json, sys, time
import numpy as np
import onnxruntime
from pathlib import Path
from tokenizers import Tokenizer

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
texts = json.load(sys.stdin)
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.no_padding()
tokenizer.enable_truncation(256)
session = onnxruntime.InferenceSession(str(folder / "onnx" / "model.onnx"))
names = [each.name for each in session.get_inputs()]
taken, begun = [], time.perf_counter()
while time.perf_counter() - begun < seconds:
    start = time.perf_counter()
    row = tokenizer.encode(texts[len(taken) % len(texts)])
    given = {"input_ids": row.ids, "attention_mask": row.attention_mask, "token_type_ids": row.type_ids}
    (output, *_) = session.run(None, {name: np.array([given[name]]) for name in names})
    vector = output.mean(axis=1) if output.ndim == 3 else output
    json.dumps((vector / np.linalg.norm(vector)).tolist())
    taken.append(time.perf_counter() - start)
print(json.dumps(taken))
"""


def ask(port: int, path: str, bodies: Sequence[str], seconds: float, clients: int) -> list[float]:
    """The seconds of each request of all clients."""
    taken: list[float] = []
    ends = time.perf_counter() + seconds

    def work(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while time.perf_counter() < ends:
            number += 1
            start = time.perf_counter()
            connection.request(
                "POST", path, bodies[number % len(bodies)], {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise SystemExit(answer.decode())
            taken.append(time.perf_counter() - start)
        connection.close()

    threads = [threading.Thread(target=work, args=(number * 7,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return taken


def measure(port: int, path: str, bodies: Sequence[str], given: argparse.Namespace) -> dict[int, list[float]]:
    """The seconds of the requests by the number of clients, which are a process of their own."""
    found = {}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(ask, (port, path, bodies, 1.0, 8))  # both have to warm up
        for clients in given.clients:
            found[clients] = pool.apply(ask, (port, path, bodies, given.seconds, clients))
    return found


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


def row(name: str, clients: int, taken: Sequence[float], seconds: float) -> None:
    """Print the figures of a measurement."""
    p50, p99 = (statistics.quantiles(taken, n=100)[at] * 1000 for at in (49, 98))
    print(f"| {name} | {clients} | {len(taken) / seconds:,.1f} | {p50:,.1f} | {p99:,.1f} |", flush=True)


def info(port: int) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/info")
    return json.loads(connection.getresponse().read())["models"][0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--python")
    parser.add_argument("--classifier", type=Path)
    parser.add_argument("--engine", default="auto")
    given = parser.parse_args()
    from bertcli.config.section import Decoding
    from bertcli.corpus.streams import read_lines
    from bertcli.inference.serve import engine
    from bertcli.tasks.files import find_labeled_file

    _, *lines = read_lines(find_labeled_file("sms-spam"), Decoding())
    texts = [line.split("\t")[-1] for line in lines[:512]]
    print("| server | clients | requests/s | p50, ms | p99, ms |\n|---|---|---|---|---|")
    measured = [(given.model, "/embed", "inputs")]
    measured += [(given.classifier, "/v1/bertcli/predict", "rows")] if given.classifier else []
    for model, path, key in measured:
        cut = {"truncate": True} if path == "/embed" else {}
        bodies = [json.dumps({key: [text]} | cut) for text in texts]
        with server(f"bench={model}", "--engine", given.engine) as (_, port, _said):
            name = f"bertcli serve, {path}, {info(port)['engine']}"
            for clients, taken in measure(port, path, bodies, given).items():
                row(name, clients, taken, given.seconds)
        kept = engine._exported(model, path == "/embed") if given.engine != "bertcli" else None
        if kept is not None:
            command = [sys.executable, "-c", BARE, str(kept), str(given.seconds)]
            done = subprocess.run(
                command, input=json.dumps(texts), capture_output=True, text=True, check=True
            )
            row(f"bare onnxruntime, {path}", 1, json.loads(done.stdout), given.seconds)
    if given.python:
        with peer(given.python, given.model, 8901):
            bodies = [json.dumps({"inputs": [text]}) for text in texts]
            for clients, taken in measure(8901, "/embed", bodies, given).items():
                row("sentence-transformers, a plain route", clients, taken, given.seconds)


if __name__ == "__main__":
    main()
