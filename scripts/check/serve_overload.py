"""A server that is asked too much: memory stays flat, each answer has its code, `/health` answers in time.

    python scripts/check/serve_overload.py [--minutes 10] [--clients 1000] [--model MODEL]

Clients of every bad kind at once: too many, bodies of 10 MB, headers that stop halfway, texts of 50,000
words, bytes that are no UTF-8, JSON of 100,000 brackets, of 500,000 numbers and of 100,000 keys, no key,
sockets that close before the answer. Without --model, a tiny classifier is served. It prints the codes of
each kind, the memory after the first fifth of the time and at the end, and the slowest answer of `/health`.
It ends with 1 if a code is none of those expected, memory has grown by more than 10 %, `/health` took more
than a second, the server said anything of an error, or does not answer afterward.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.check.serve_load import server

KEY = "the key of this check"
HEAD = (
    "POST /v1/bertcli/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    f"Connection: close\r\nAuthorization: Bearer {KEY}\r\n"
)
LONG = " ".join(["the cat sat on the mat"] * 8334)
KINDS: dict[str, tuple[bytes, set[str]]] = {
    "short": (b'{"rows": "the cat sat on the mat"}', {"200", "429"}),
    "50,000 words": (json.dumps({"rows": LONG}).encode(), {"200", "429"}),
    "10 MB": (b" " * 10_000_000, {"413"}),
    "wrong UTF-8": (b'{"rows": "\xff\xfe"}', {"422"}),
    "brackets": (b"[" * 100_000, {"422"}),
    "numbers": (b'{"rows": [' + b"1," * 500_000 + b"1]}", {"422", "429"}),
    "keys": (b"{" + b",".join(b'"%d": 1' % number for number in range(100_000)) + b"}", {"422", "429"}),
    "half a body": (b'{"rows": ', {"422"}),
    "no key": (b'{"rows": "the cat"}', {"401"}),
    "half of the headers": (b"", {"408"}),
    "closed socket": (b'{"rows": "the cat sat"}', {"left"}),
}


async def ask(port: int, kind: str) -> str:
    """The code of one request."""
    body, _ = KINDS[kind]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = HEAD
        if kind == "no key":
            head = head.replace(f"Authorization: Bearer {KEY}\r\n", "")
        if kind == "half of the headers":
            writer.write(head[: random.randrange(10, len(head))].encode())
        else:
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        if kind == "closed socket":
            await asyncio.sleep(random.random() / 20)
            return "left"
        line = await asyncio.wait_for(reader.readline(), 300)
        while await reader.read(1 << 16):
            pass
        return line.split()[1].decode() if line else "nothing"
    finally:
        writer.close()


async def overload(port: int, pid: int, given: argparse.Namespace) -> tuple[dict, list[float], list[int]]:
    """The codes of each kind, the seconds of each `/health`, and the bytes of memory over time."""
    codes: dict[str, collections.Counter[str]] = {kind: collections.Counter() for kind in KINDS}
    ends, health, memory = time.monotonic() + 60 * given.minutes, list[float](), list[int]()
    large = asyncio.Semaphore(32)  # else the clients themselves would need gigabytes

    async def client(number: int) -> None:
        kind = list(KINDS)[number % len(KINDS)]
        while time.monotonic() < ends:
            try:
                async with large if len(KINDS[kind][0]) > 100_000 else asyncio.Semaphore():
                    codes[kind][await ask(port, kind)] += 1
            except (TimeoutError, OSError) as error:
                codes[kind][type(error).__name__] += 1
            await asyncio.sleep(random.random() / 5)

    async def watch() -> None:
        while time.monotonic() < ends:
            begun = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            line = await reader.readline()
            health.append(time.monotonic() - begun if b"200" in line else 1e9)
            writer.close()
            memory.append(resident(pid))
            await asyncio.sleep(0.25)

    await asyncio.gather(watch(), *(client(number) for number in range(given.clients)))
    return codes, health, memory


def resident(pid: int) -> int:
    """The bytes of memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--model", type=Path)
    given = parser.parse_args()
    os.environ["BERTCLI_API_KEY"] = KEY
    with tempfile.TemporaryDirectory() as folder:
        if given.model is None:
            from tests.folders.folders import saved_task

            given.model = Path(folder) / "tiny"
            saved_task(given.model, "multi-label", max_positions=512)
        with server(given.model, "--engine", "bertcli") as (process, port, said):
            before = len(said)
            codes, health, memory = asyncio.run(overload(port, process.pid, given))
            after = asyncio.run(ask(port, "short"))
            spoken = said[before:]
    wrong = []
    for kind, found in codes.items():
        print(f"{kind}: {', '.join(f'{code} {count:,}' for code, count in sorted(found.items()))}")
        wrong += [f"{kind}: {code}" for code in found if code not in KINDS[kind][1]]
    fifth = max(memory[: len(memory) // 5])
    last = max(memory[-len(memory) // 5 :])
    growth = last / fifth - 1
    print(f"memory: {fifth / 1e6:,.0f} MB at first, {last / 1e6:,.0f} MB at last ({growth:+.1%})")
    print(f"/health: {len(health):,} times, the slowest {max(health):.2f} s")
    wrong += ["memory grows"] * (last > 1.1 * fifth) + ["/health is slow"] * (max(health) > 1)
    wrong += [f"said: {line}" for line in spoken] + ["no answer afterward"] * (after != "200")
    print("\n".join(wrong) or "all as expected")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
