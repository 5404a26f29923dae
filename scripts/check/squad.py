"""A question-answering model's scores by `bertcli evaluate` and by SQuAD's own scorer, to the last digit.

    python scripts/check/squad.py MODEL dev-v1.1.json evaluate-v1.1.py [--questions 500]

The answers are those of `bertcli predict` on the same file. Without a trained model at hand any folder that
`bertcli finetune` wrote for type: question-answering will do, however poor its answers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("scorer", type=Path)
    parser.add_argument("--questions", type=int, help="only the first so many")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = cut(options.data, options.questions, Path(folder) / "data.json")
        ours = json.loads(bertcli("evaluate", options.model, "--data", data, "--json"))
        lines = bertcli("predict", options.model, "--input", data, "--json").splitlines()
        answers = {row["id"]: row["answer"] for row in map(json.loads, lines)}
        predictions = Path(folder) / "predictions.json"
        predictions.write_text(json.dumps(answers))
        official = json.loads(run(sys.executable, options.scorer, data, predictions))
    print(f"{len(answers):,} questions, {sum(map(bool, answers.values())):,} answered")
    for name in ("exact_match", "f1"):
        print(f"{name:<12} bertcli {ours[name]!r:<20} official {official[name]!r}")
    if any(ours[name] != official[name] for name in ("exact_match", "f1")):
        sys.exit("they differ")


def cut(source: Path, questions: int | None, target: Path) -> Path:
    """The data set with its first questions alone."""
    content: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    left = questions if questions is not None else sys.maxsize
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = paragraph["qas"][:left]
            left -= len(paragraph["qas"])
        article["paragraphs"] = [each for each in article["paragraphs"] if each["qas"]]
    content["data"] = [article for article in content["data"] if article["paragraphs"]]
    target.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return target


def bertcli(*arguments: object) -> str:
    return run(sys.executable, "-m", "bertcli", *arguments)


def run(*command: object) -> str:
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
