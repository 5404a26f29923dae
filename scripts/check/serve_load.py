"""Answers under load equal those alone: many clients, mixed lengths, a model of each family.

    python scripts/check/serve_load.py [--requests 10000] [--clients 64] [--model NAME=MODEL ...]

Without --model, each family has a tiny classifier with random weights, and one model gives vectors. For
every model, `bertcli serve` runs in a process of its own. Each request has one text of 1 to 200 words, its
number among them, so that no two are alike. Each answer is compared with that for this text alone, computed
by the engine that the server has chosen. It prints the largest difference (numbers above 1 in units of the
largest one), and ends with 1 if it is above 1e-6, or an answer is missing, doubled or another text's.
"""

from __future__ import annotations

import argparse
import http.client
import json
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

WORDS = "the a cat dog sat on mat ran house dark was of night she he it and in".split()  # noqa: SIM905
MOST = 1e-6


@contextmanager
def server(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], int, list[str]]]:
    """A process of `bertcli serve`, its port, and the lines that it says."""
    command = [sys.executable, "-m", "bertcli", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stderr is not None
    said: list[str] = []
    try:
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"serving at http://\S+:(\d+)", line):
                break
        else:
            raise SystemExit("".join(said))
        reader = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        reader.start()
        yield process, int(found[1]), said
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=120)


def text_of(number: int) -> str:
    """The text of a request: mostly short, some long."""
    draw = random.Random(number)
    length = 1 + int(200 * draw.random() ** 3)
    words = [draw.choice(WORDS) for _ in range(length)]
    words.insert(draw.randrange(length), str(number))
    return " ".join(words)


def ask_all(port: int, path: str, key: str, count: int, clients: int) -> dict[int, list[Any]]:
    """The answers to each request, by its number."""
    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(count):
        numbers.put(number)
    found: dict[int, list[Any]] = {}

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        while True:
            try:
                number = numbers.get_nowait()
            except queue.Empty:
                return connection.close()
            body = json.dumps({key: text_of(number)})
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 200:
                raise SystemExit(f"{response.status}: {answer}")
            found.setdefault(number, []).extend(answer)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return found


def difference(found: Any, expected: Any) -> float:
    """The largest difference of two answers; infinite if they differ in anything but numbers."""
    if isinstance(expected, float):
        return abs(found - expected)
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        return max((difference(found[key], expected[key]) for key in expected), default=0.0)
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        largest = max((abs(each) for each in expected if isinstance(each, float)), default=0.0)
        worst = max(map(difference, found, expected), default=0.0)
        return worst / max(1.0, largest)
    return 0.0 if found == expected else float("inf")


def tiny_models(folder: Path) -> dict[str, Path]:
    """A classifier of each family with random weights, and a model of vectors."""
    from tests.folders.folders import saved_vectors
    from tests.parity.families import FIRST, saved_task

    for case in FIRST:
        saved_task(folder / case.model_type, case, "multi-label")
    saved_vectors(folder / "vectors")
    return {name: folder / name for name in (*(case.model_type for case in FIRST), "vectors")}


def check(name: str, model: Path, given: argparse.Namespace) -> bool:
    """Compare all answers of one model; true if they are right."""
    from bertcli.inference.opened import Compute
    from bertcli.inference.serve.engine import open_served

    engine = ["--engine", given.engine]
    with server(f"{name}={model}", *engine) as (_, port, _said):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/info")
        (info,) = json.loads(connection.getresponse().read())["models"]
        kind, key = ("predict", "rows") if info["task"] else ("embed", "texts")
        begun = time.perf_counter()
        found = ask_all(port, f"/v1/bertcli/{kind}", key, given.requests, given.clients)
        seconds = time.perf_counter() - begun
    alone = open_served(name, model, Compute("auto", "fp32"), engine=info["engine"])
    worst, wrong = 0.0, 0
    for number in range(given.requests):
        expected = answer_alone(alone, text_of(number))
        answers = found.get(number, [])
        apart = difference(answers[0], expected) if len(answers) == 1 else float("inf")
        worst, wrong = max(worst, apart), wrong + (apart > MOST)
    print(
        f"{name}: {info['engine']}, {given.requests:,} requests of {given.clients} clients, "
        f"{given.requests / seconds:,.0f} a second; largest difference {worst:.1e}, {wrong} wrong",
        flush=True,
    )
    return wrong == 0


def answer_alone(served: Any, text: str) -> Any:
    """The object of `--json` for one text, which is computed alone."""
    from bertcli.inference.inputs import example_of
    from bertcli.inference.outputs import row_json

    if served.predictions is not None:
        settings = served.predictions.runner.task.settings
        encoded = served.predictions.encode(example_of([text], "row 1", settings))
        return json.loads(json.dumps(row_json(served.predictions.compute([encoded])[0])))
    (vector_D,) = served.vectors.compute([served.vectors.encode(text)])
    return {"text": text, "vector": vector_D.tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--engine", default="auto", choices=["auto", "bertcli", "onnxruntime"])
    parser.add_argument("--model", action="append", metavar="NAME=MODEL")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.model:
            models = {name: Path(path) for name, _, path in (each.partition("=") for each in given.model)}
        else:
            models = tiny_models(Path(folder))
        right = [check(name, model, given) for name, model in models.items()]
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
