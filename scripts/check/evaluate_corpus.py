"""`evaluate --corpus` beside a plain loop around transformers, on ten texts: is each token read once?

    python scripts/check/evaluate_corpus.py MODEL TEXT... [--max-length 64]

MODEL: a BERT of `bertcli pretrain`, with both heads. TEXT: files, plain or .gz, with blank lines between
documents; their first 1 KB to 5 MB are the ten texts. For each text, the loop reads the same masked rows, and
transformers' own tokenizer counts the tokens. Ends with 1 if a loss differs by over 0.01, or if a token is
missing or read twice. Needs the test extras.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from transformers import AutoTokenizer, BertForPreTraining

from bertcli.batches.share import Share
from bertcli.folders.locate import resolve_model
from bertcli.objectives.registry import MLM_NSP
from bertcli.training.heldout import HeldoutBatches, as_in_bert, text_store
from tests.parity.transformers_side import plain_evaluation

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 700_000, 1_500_000, 3_000_000, 5_000_000)
"""Bytes."""
BATCH, CLOSE = 32, 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--max-length", type=int, default=64)
    options = parser.parse_args()
    text = "\n\n".join(read(path) for path in options.texts)
    titles = ("bytes", "tokens", "distinct", "mlm", "plain", "nsp", "plain", "pairs")
    print(*(f"{title:>9}" for title in titles))
    good = [measure(options.model, text.encode()[:size], options.max_length) for size in SIZES]
    sys.exit(0 if all(good) else 1)


def read(path: Path) -> str:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return file.read()


def measure(model: Path, text: bytes, max_length: int) -> bool:
    """Print the line of a text; returns whether both sides agree."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "text.txt"
        file.write_bytes(text.decode("utf-8", errors="ignore").encode())
        reading = ["--format", "text", "--document", "blank-line", "--encoding", "utf-8"]
        command = [sys.executable, "-m", "bertcli", "evaluate", str(model), "--corpus", str(file), *reading]
        command += ["--max-length", str(max_length), "--batch-size", str(BATCH), "--json"]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        folder = resolve_model(model)
        store = text_store(
            folder,
            {"files": [str(file)], "encoding": "utf-8", "language": "en"},
            f"{scratch}/store",
            report=lambda _: None,
        )
        config = as_in_bert(MLM_NSP, max_length)
        batches = HeldoutBatches(store.train, store.tokenizer, config, batch_size=BATCH)
        theirs = BertForPreTraining.from_pretrained(folder).eval()
        losses, held = plain_evaluation(theirs, batches.steps(Share(BATCH)))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ids = tokenizer(file.read_text(encoding="utf-8"), add_special_tokens=False, verbose=False).input_ids
    for special in store.tokenizer.frame.prefix + store.tokenizer.frame.suffix:
        del held[special]
    good = held == Counter(ids) and ours["tokens"] == ours["distinct_tokens"] == len(ids)
    good = good and all(abs(ours[name] - loss) < CLOSE for name, loss in losses.items())
    mlm = [ours["mlm_loss"], losses["mlm_loss"]]
    nsp = [each.get("nsp_loss", 0.0) for each in (ours, losses)]
    counts = [len(text), ours["tokens"], ours["distinct_tokens"]]
    row = [*(f"{count:,}" for count in counts), *(f"{loss:.4f}" for loss in [*mlm, *nsp])]
    row.append(f"{ours.get('nsp_pairs', 0):,}")
    print(*(f"{cell:>9}" for cell in row), "" if good else "DIFFERENT", flush=True)
    return good


if __name__ == "__main__":
    main()
