"""CoNLL data as the files of five annotation tools, and back: entities, examples, answers and F1.

    python scripts/check/spans.py TRAIN.conll TEST.conll MODEL [--random 10000] [--seeds 3] [--set KEY=VALUE]

The sentences of TEST are written for each tool and read again with the words of MODEL's tokenizer (a model
folder or a vocabulary): the entities must be the same by their characters, and so must the examples where
CoNLL's words are the tokenizer's. With --seeds, MODEL is fine-tuned on TRAIN in CoNLL's form and as spans,
with each seed; the entity F1 of both on TEST is printed, by characters. What `bertcli predict --annotations`
writes for TEST must have the characters that `--json` has.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from bertcli.config.task import TaskSettings
from bertcli.inference.annotations import TOOLS, annotations
from bertcli.tasks.examples import MarkedText, Mention, TaggedExample
from bertcli.tasks.files import read_examples
from bertcli.tasks.places import mentions_of
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.word_places import placed_words

CONLL = TaskSettings(type="token-classification", format="conll")
SPANS = TaskSettings(type="token-classification", format="spans")
NAMES = {"label-studio": "ls.json", "brat": "brat"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("model")
    parser.add_argument("--random", type=int, default=0, help="so many random texts and spans")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="a key of the fine-tuning config")
    options = parser.parse_args()
    tokenizer = Tokenizer.load(options.model)
    with tempfile.TemporaryDirectory() as folder:
        found = [check_file(tool, options.test, tokenizer, Path(folder)) for tool in TOOLS]
        if options.random:
            texts = random_texts(options.random, tokenizer)
            found += [check_random(tool, texts, tokenizer, Path(folder)) for tool in TOOLS]
        scores = check_training(options, Path(folder)) if options.seeds else []
    if not all([*found, *scores]):
        sys.exit("they differ")


def check_file(tool: str, conll: Path, tokenizer: Tokenizer, folder: Path) -> bool:
    """Write a CoNLL file for a tool, and read it again."""
    truth = list(read_examples(conll, CONLL, labeled=True))
    again = read(write_gold(tool, truth, folder), tokenizer)
    same_words = [(a, b) for a, b in zip(truth, again, strict=True) if a.words == b.words]
    entities = [by_characters(truth), by_characters(again)]
    same_examples = sum((a.texts, a.spans, a.tags) == (b.texts, b.spans, b.tags) for a, b in same_words)
    print(
        f"{tool:<13} {sum(map(len, entities[0])):,} entities; read again, the same: "
        f"{entities[0] == entities[1]}; of {len(truth):,} texts {len(same_words):,} have the same words, and "
        f"{same_examples:,} of these are the same examples"
    )
    return entities[0] == entities[1] and same_examples == len(same_words)


SCRIPTS = (
    *(
        "abcXYZ",
        "éüñß",
        "e\u0301o\u0308n\u0303",
        "Приветы",
        "नमस्तेकि",
        "العربية",
        "東京都タワー漢字",
        "กินข้าวที่",
    ),
    *("한국어말", "👍🏽🎉❤️😀👨\u200d👩\u200d👧", ".,;!?“”()-'/@#", "0123456789"),
)


def random_texts(number: int, tokenizer: Tokenizer) -> list[MarkedText]:
    """Texts of random words of several scripts, with spans of random words of the tokenizer."""
    source, found = random.Random(0), list[MarkedText]()
    while len(found) < number:
        parts = (
            "".join(source.choices(source.choice(SCRIPTS), k=source.randint(1, 6)))
            + source.choice(["", " ", " ", "\n"])
            for _ in range(source.randint(1, 12))
        )
        text = "".join(parts)
        (words,) = placed_words(tokenizer, [text])
        mentions, at = list[Mention](), 0
        while at < len(words):
            last = min(at + source.randrange(3), len(words) - 1)
            if source.random() < 0.4:
                mentions.append(Mention(words[at].start, words[last].end, source.choice("xyz")))
            at = last + 1
        if words:
            found.append(MarkedText(f"text {len(found)}", {}, (text,), tuple(mentions)))
    return found


def check_random(tool: str, texts: Sequence[MarkedText], tokenizer: Tokenizer, folder: Path) -> bool:
    """Write random texts for a tool, and read them again."""
    unit = "utf-16" if tool == "doccano" else "characters"
    output = folder / f"random-{NAMES.get(tool, f'{tool}.jsonl')}"
    with annotations(tool, output, SPANS) as write:
        for each in texts:
            write(each, each.mentions or ())
    again = read(as_work(output) if tool == "label-studio" else output, tokenizer, offsets=unit)
    truth = [set(each.mentions or ()) for each in texts]
    same = truth == by_characters(again)
    number = sum(map(len, truth))
    print(f"{tool:<13} {len(texts):,} random texts, {number:,} spans; read again, the same: {same}")
    return same


def write_gold(tool: str, examples: Sequence[TaggedExample], folder: Path, name: str = "gold") -> Path:
    """The examples in a tool's form, as people's work."""
    output = folder / f"{name}-{NAMES.get(tool, f'{tool}.jsonl')}"
    with annotations(tool, output, SPANS) as write:
        for example in examples:
            write(example, mentions_of(example) or ())
    return as_work(output) if tool == "label-studio" else output


def as_work(path: Path) -> Path:
    """A file of Label Studio whose predictions are made annotations, as its users do."""
    tasks = json.loads(path.read_text(encoding="utf-8"))
    done = [{"data": task["data"], "annotations": task["predictions"]} for task in tasks]
    path.write_text(json.dumps(done), encoding="utf-8")
    return path


def read(path: Path, tokenizer: Tokenizer, **keys: Any) -> list[TaggedExample]:
    settings = TaskSettings.model_validate(SPANS.model_dump() | keys)
    return list(read_examples(path, settings, labeled=True, tokenizer=tokenizer))


def by_characters(examples: Sequence[TaggedExample]) -> list[set[Mention]]:
    return [set(mentions_of(example) or ()) for example in examples]


def check_training(options: Any, folder: Path) -> list[bool]:
    """Fine-tune on both forms, and compare what they answer; then write the answers for each tool."""
    files: dict[str, list[Path]] = {"conll": [options.train, options.test], "spans": []}
    for name, path in zip(("train", "test"), files["conll"], strict=True):
        examples = list(read_examples(path, CONLL, labeled=True))
        files["spans"].append(write_gold("doccano", examples, folder, name))
    for form, (train, test) in files.items():
        f1 = list[float]()
        for seed in range(1, options.seeds + 1):
            run, path = folder / f"{form}-{seed}", folder / "config.yaml"
            task = {"type": "token-classification", "format": form, "train": str(train)}
            config = {"output_dir": str(run), "model": options.model, "seed": seed, "task": task}
            path.write_text(json.dumps(config), encoding="utf-8")
            bertcli("finetune", path, *(part for each in options.set for part in ("--set", each)))
            f1.append(json.loads(bertcli("evaluate", run, "--data", test, "--json"))["f1"])
        seeds = ", ".join(f"{score:.4f}" for score in f1)
        print(f"{form:<13} entity F1 by characters {mean(f1):.4f}, seeds {seeds}", flush=True)
    model, test = folder / "spans-1", files["spans"][1]
    lines = bertcli("predict", model, "--input", test, "--json").splitlines()
    answers = [{(e["start"], e["end"]) for e in json.loads(line)["entities"]} for line in lines]
    return [check_answers(tool, answers, model, test, folder) for tool in TOOLS]


def check_answers(
    tool: str, answers: Sequence[set[tuple[int, int]]], model: Path, test: Path, folder: Path
) -> bool:
    """Write the answers for a tool, and read them again as people's work."""
    output = folder / f"answers-{NAMES.get(tool, f'{tool}.jsonl')}"
    bertcli("predict", model, "--input", test, "--annotations", tool, "--output", output)
    output = as_work(output) if tool == "label-studio" else output
    read_again = by_characters(read(output, Tokenizer.load(model / "model")))
    again = [{(each.start, each.end) for each in found} for found in read_again]
    number = sum(map(len, answers))
    print(f"{tool:<13} {number:,} answers, written and read again: the same: {again == answers}")
    return again == answers


def bertcli(*arguments: object) -> str:
    command = [sys.executable, "-m", "bertcli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    main()
