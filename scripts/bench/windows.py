"""How fast `bertcli predict` reads long texts in windows, beside a plain loop of windows with transformers.

    python scripts/bench/windows.py MODEL [--texts 40] [--rounds 3] [--max-length 256] [--threads 1]

MODEL is any BERT folder; "minilm" as in scripts/bench/finetune.py. It gets a fresh head of two labels. Both
sides answer texts of 200 to 2,000 words (scripts/check/long_texts.py) in fp32 on the CPU, in turn, in one
process, from strings to labels, by the mean of the logits of windows that share a quarter of their tokens.
The plain loop takes a window at a time, as transformers' tokenizer divides the text
(`return_overflowing_tokens=True`); with `--loop texts` it takes all windows of a text at a time, padded to
the longest. Processor time is shown too: other work on the machine does not change it much. Needs
the test extras.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from bertcli.config.task import TaskSettings
from bertcli.folders.model_files import write_model_files
from bertcli.folders.task_folder import declare_task, load_for_finetuning

sys.path.insert(0, str(Path(__file__).parents[2]))
from scripts.bench.finetune import find_minilm
from scripts.bench.predict import compare, our_answers
from scripts.check.long_texts import write_texts

LABELS = ("bad", "good")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-length", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of bertcli alone")
    parser.add_argument("--loop", choices=["windows", "texts"], default="windows")
    parser.add_argument("--products", action="store_true", help="print the part of matrix products")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        folder, texts = Path(scratch) / "model", Path(scratch) / "texts.jsonl"
        folder.mkdir()
        model = find_minilm() if options.model == "minilm" else Path(options.model)
        settings = write_model(Path(model), folder, options.max_length)
        write_texts(texts, options.texts, seed=1)
        lines = [json.loads(line)["text"] for line in texts.read_text(encoding="utf-8").splitlines()]
        ours = our_answers(folder, options.batch_size, options.precision)
        theirs = plain_loop(folder, settings, rows=1 if options.loop == "windows" else None)
        compare(ours, theirs, lines, rounds=options.rounds, warm_up=2)
        if options.products:
            for name, answer in (("bertcli", ours), ("the plain loop", theirs)):
                print(f"{name}: {products(answer, lines):.0%} of the time is matrix products and attention")


def products(answer: Callable[[list[str]], list[str]], texts: list[str]) -> float:
    """The share of matrix products and attention in the processor time of torch and tokenizer."""
    begun = time.process_time()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        answer(texts)
        used = time.process_time() - begun
    events = [each for each in profile.key_averages() if re.search("mm$|linear|attention", each.key)]
    return sum(each.self_cpu_time_total for each in events) / 1e6 / used


def write_model(model: Path, folder: Path, max_length: int) -> TaskSettings:
    """A classifier with fresh weights in its head, which reads in windows."""
    settings = TaskSettings(
        type="classification",
        text="text",
        label="label",
        max_length=max_length,
        doc_stride=max_length // 4,
        windows="mean",
        max_windows=1000,
    )
    torch.manual_seed(0)
    loaded = load_for_finetuning(model, settings, LABELS)
    write_model_files(folder, loaded.model, loaded.tokenizer, declared=declare_task(settings, LABELS))
    return settings


def plain_loop(folder: Path, settings: TaskSettings, rows: int | None) -> Callable[[list[str]], list[str]]:
    """Texts -> labels; `rows`: windows at once, None: all of a text."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    @torch.inference_mode()
    def answer(texts: list[str]) -> list[str]:
        found = []
        for text in texts:
            windows = tokenizer(
                text,
                truncation=True,
                max_length=settings.max_length,
                stride=settings.doc_stride,
                return_overflowing_tokens=True,
                padding=True,
                return_tensors="pt",
            )
            del windows["overflow_to_sample_mapping"]
            number = len(windows["input_ids"])
            logits = [
                model(
                    **{name: each[start : start + (rows or number)] for name, each in windows.items()}
                ).logits
                for start in range(0, number, rows or number)
            ]
            found.append(LABELS[int(torch.cat(logits).mean(dim=0).argmax())])
        return found

    return answer


if __name__ == "__main__":
    main()
