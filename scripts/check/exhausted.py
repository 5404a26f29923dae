"""Real limits of memory and of shared memory: does each end in one message and exit code 2?

    python scripts/check/exhausted.py [--memory 200 300 400 500 600 700]

A limit of memory may also end the command in a library in C or C++, which no program can prevent; a high
limit ends in the message that there is no such model. /dev/shm is mounted anew for one command, which needs
root and Linux; nothing else of the machine is used up. Exits with 1 if any command ended otherwise.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

BERTCLI = [sys.executable, "-P", "-m", "bertcli"]


def verdict(name: str, command: list[str], prepare: Callable[[], None] | None = None) -> bool:
    """Run a command after `prepare`, print how it ended, and return whether that is as it should be."""
    done = subprocess.run(
        command, preexec_fn=prepare, capture_output=True, text=True, timeout=300, check=False
    )
    lines = done.stderr.splitlines() or [""]
    has_message = done.returncode == 2 and lines[-1].startswith("error: ") and "Traceback" not in done.stderr
    ended = done.returncode in (-signal.SIGABRT, 1) and "Traceback" not in done.stderr
    print(
        f"{name}: {'good' if has_message else 'ended by a library' if ended else 'BAD'}: {lines[-1][:150]}",
        flush=True,
    )
    return has_message or ended


def limited(memory: int) -> Callable[[], None]:
    """A function that limits the memory of the new process."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def shared_memory(folder: Path, taken: int) -> bool:
    """The verdict on a loader process with 300 KB of shared memory, `taken` bytes of which are in use."""
    corpus, config = folder / "corpus.txt", folder / "config.yaml"
    corpus.write_text("".join(f"Line {n} of a text.\n\n" for n in range(5000)), encoding="utf-8")
    values = {
        "output_dir": str(folder / "run"),
        "corpus": {"files": [str(corpus)]},
        "tokenizer": {"vocab_size": 200},
        "model": {"preset": "tiny"},
        "data": {"objective": "mlm", "max_length": 64, "workers": 1},
        "training": {"device": "cpu", "steps": 30},
    }
    config.write_text(yaml.safe_dump(values), encoding="utf-8")
    script = (
        f"mount -t tmpfs -o size=300k tmpfs /dev/shm; head -c {taken} /dev/zero > /dev/shm/full; exec $0 $@"
    )
    stream = [*BERTCLI, "bench", "stream", str(config), "--batches", "30"]
    return verdict(f"/dev/shm, {taken} bytes taken", ["unshare", "-m", "sh", "-c", script, *stream])


def main() -> int:
    """Check all limits; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memory", type=int, nargs="*", default=[200, 300, 400, 500, 600, 700], help="MiB")
    arguments = parser.parse_args()
    embed = [*BERTCLI, "embed", "nowhere", "text"]
    good = [verdict(f"memory {mb} MiB", embed, limited(mb << 20)) for mb in arguments.memory]
    if os.geteuid() == 0 and shutil.which("unshare"):
        with tempfile.TemporaryDirectory() as folder:
            good += [shared_memory(Path(folder), taken) for taken in (200_000, 300_000)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
