"""Signals under load: SIGTERM loses no accepted request, and a killed client no answer of another one.

    python scripts/check/serve_signals.py [--times 20] [--clients 16] [--model MODEL]

In turn: SIGTERM of the server while clients ask; SIGKILL of the server; SIGKILL of a process of clients,
after which another client must get its answers. A request counts as accepted if all of it was sent before
the signal. After each end the server is started again at the same port; it prints how long that takes until
`/health` answers, beside the time that `import torch` takes alone. The first start writes the model as ONNX;
each start chooses the faster engine. It ends with 1 if a request was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

BODY = json.dumps({"rows": ["the cat sat on the mat"] * 20}).encode()
REQUEST = (
    b"POST /v1/bertcli/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    + b"Content-Length: %d\r\n\r\n" % len(BODY)
    + BODY
)


def start(model: Path, port: int) -> tuple[subprocess.Popen[str], int, float]:
    """A server that answers, its port, and the seconds that it took to start."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "bertcli", "serve", str(model), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"serving at http://\S+:(\d+)", line):
            port = int(found[1])
            threading.Thread(target=process.stderr.read, daemon=True).start()
            break
    else:
        raise SystemExit("the server did not start")
    while True:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                connection.close()
                return process, port, time.monotonic() - begun
        time.sleep(0.01)


class Client(threading.Thread):
    """Requests one after the other, until the server is gone."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.sent, self.answered, self.last_sent = port, 0, 0, 0.0

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
                    while True:
                        connection.sendall(REQUEST)
                        self.last_sent, self.sent = time.monotonic(), self.sent + 1
                        response = http.client.HTTPResponse(connection)
                        try:
                            response.begin()
                            answers = json.loads(response.read())
                        except (http.client.HTTPException, OSError, ValueError):
                            return
                        self.answered += response.status == 200 and len(answers) == 20
                        if response.getheader("connection") == "close":
                            break


def clients_of(port: int, number: int) -> list[Client]:
    """Clients that ask."""
    clients = [Client(port) for _ in range(number)]
    for each in clients:
        each.start()
    return clients


def ask_forever(port: int, number: int) -> None:
    """A process of clients, to be killed."""
    for each in clients_of(port, number):
        each.join()


def lost_by_sigterm(process: subprocess.Popen[str], port: int, number: int) -> int:
    """The requests that were sent before SIGTERM and have no answer."""
    clients = clients_of(port, number)
    time.sleep(1.0)
    signaled = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code = process.wait(timeout=120)
    for each in clients:
        each.join(timeout=120)
    lost = [each for each in clients if each.answered < each.sent and each.last_sent < signaled]
    answered = sum(each.answered for each in clients)
    print(f"SIGTERM: exit code {code}, {answered:,} answers, {len(lost)} lost", flush=True)
    return len(lost) + (code != 0)


def lost_by_killed_clients(port: int, number: int) -> int:
    """The answers that another client lacks after a process of clients was killed."""
    context = multiprocessing.get_context("spawn")
    killed = context.Process(target=ask_forever, args=(port, number))
    killed.start()
    other = Client(port)
    other.start()
    time.sleep(2.0)
    killed.kill()
    killed.join()
    before = other.answered
    time.sleep(1.0)
    print(f"SIGKILL of clients: another one got {other.answered - before} answers after it", flush=True)
    return int(other.answered == before)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--model", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.model is None:
            from tests.folders.folders import saved_task

            given.model = Path(folder) / "tiny"
            saved_task(given.model, "multi-label", max_positions=64)
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        print(f"import torch alone: {time.monotonic() - begun:.1f} s", flush=True)
        process, port, _ = start(given.model, 0)
        starts, wrong = list[float](), 0
        for _ in range(given.times):
            wrong += lost_by_killed_clients(port, given.clients)
            wrong += lost_by_sigterm(process, port, given.clients)
            process, port, seconds = start(given.model, port)
            starts.append(seconds)
            clients_of(port, given.clients)
            time.sleep(0.5)
            process.kill()
            process.wait()
            process, port, seconds = start(given.model, port)
            starts.append(seconds)
        process.terminate()
        process.wait(timeout=120)
    print(f"starts: {len(starts)}, {min(starts):.1f} to {max(starts):.1f} s; {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
