"""Kill `predict --output` and `embed --output` anywhere: the output is the old file or the whole new one.

    python scripts/check/output_kills.py MODEL [--kills 30] [--rows 20000] [--seed 0]

MODEL is a fine-tuned model folder whose rows are one text. Each round puts an old file down, starts a command
over the same rows, kills it (SIGKILL) after a time drawn between nothing and a fifth more than a whole run
takes, and compares. Exit code 1 where a file was neither.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OLD = b"the old file\n"
OUTPUTS = {"predict": "answers.tsv", "embed": "vectors.npy"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    source, bad = random.Random(given.seed), 0
    with tempfile.TemporaryDirectory() as place:
        texts = Path(place) / "texts.txt"
        texts.write_text("".join(f"the cat sat {number} times on the mat\n" for number in range(given.rows)))
        whole, seconds = {}, {}
        for verb in OUTPUTS:
            started = time.monotonic()
            whole[verb] = _run(verb, given.model, texts, None)
            seconds[verb] = time.monotonic() - started
            assert whole[verb] != OLD
        ends = {"old": 0, "new": 0}
        for number in range(given.kills):
            verb = list(OUTPUTS)[number % len(OUTPUTS)]
            after = source.uniform(0, 1.2 * seconds[verb])
            found = _run(verb, given.model, texts, after)
            end = "old" if found == OLD else "new" if found == whole[verb] else None
            if end is None:
                bad += 1
                print(f"{verb} killed after {after:.2f} s: {len(found):,} bytes, neither old nor new")
            else:
                ends[end] += 1
    print(
        f"{given.kills} kills: the old file {ends['old']} times, the new one {ends['new']} times, else {bad}"
    )
    sys.exit(bool(bad))


def _run(verb: str, model: str, texts: Path, kill_after: float | None) -> bytes:
    """What stands under the output's name at the end."""
    output = texts.with_name(OUTPUTS[verb])
    output.write_bytes(OLD)
    command = [sys.executable, "-m", "bertcli", verb, model, "--input", str(texts), "--output", str(output)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        code = process.wait(kill_after)
        assert code == 0, f"{' '.join(command)}: exit code {code}"
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return output.read_bytes()


if __name__ == "__main__":
    main()
