"""The calibration of fine-tuned models, on rows that neither trained nor fitted them; and their thresholds.

    python scripts/check/calibration.py MODEL DATA --out FOLDER [--tasks sst2 cola spam] [--seeds 1 2 3]
        [--netcal PYTHON]

MODEL is any BERT folder; "minilm" as in scripts/bench/finetune.py. DATA is a folder with GLUE's SST-2 and
CoLA; sms-spam is bundled. SST-2 trains on 4,000 rows and is measured on the 10,000 after them; of the others
every fourth row measures. A tenth of the training rows is dev, which fits the temperature. Prints for each
task and seed the temperature and the expected calibration error before and after. --netcal names an
interpreter that has netcal; its figure for the probabilities of the same answers is compared. The best
threshold by F1, and by a precision of 0.95, of these rows is compared with a search by scikit-learn. A
finished run in FOLDER is not repeated.

Ends with exit code 1 if a mean error after is neither half of that before nor below 0.02, if a figure differs
from netcal's by 1e-6, or if a threshold has another F1 or recall than scikit-learn's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.samples import LABELED
from bertcli.tasks.calibration import best_threshold
from scripts.bench.finetune import find_minilm
from scripts.bench.small_tasks import bertcli, files, write

PRECISION = 0.95
NETCAL = """
import json, sys, numpy
from netcal.metrics import ECE
given = json.load(sys.stdin)
print(float(ECE(15).measure(numpy.array(given["probabilities"]), numpy.array(given["right"]))))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["sst2", "cola", "spam"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--netcal", help="a Python interpreter")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    model = str(find_minilm() if options.model == "minilm" else options.model)
    tasks = sections(options.data, options.out)
    good = True
    print("| task | seed | temperature | before | after | netcal |\n|---|---|---|---|---|---|")
    for name in options.tasks:
        errors = []
        for seed in options.seeds:
            run = trained(options.out / f"{name}-{seed}", model, tasks[name], seed=seed)
            scores = json.loads(bertcli("evaluate", run, "--data", tasks[name]["dev"], "--json"))
            before, after = scores["uncalibrated_error"], scores["expected_calibration_error"]
            errors.append((before, after))
            probabilities_NC, truth_N = answers(run, tasks[name])
            theirs = by_netcal(options.netcal, probabilities_NC, truth_N) if options.netcal else None
            good &= theirs is None or abs(theirs - after) < 1e-6
            good &= finds_the_same(probabilities_NC[:, 1], truth_N == 1)
            config = json.loads((run / "model" / "config.json").read_text())
            shown = "" if theirs is None else f"{theirs:.7f}"
            temperature = config["bertcli_task"]["temperature"]
            print(
                f"| {name} | {seed} | {temperature:.3f} | {before:.4f} | {after:.7f} | {shown} |", flush=True
            )
        before, after = (statistics.mean(each) for each in zip(*errors, strict=True))
        print(f"| {name} | mean | | {before:.4f} | {after:.4f} | |", flush=True)
        good &= after <= max(before / 2, 0.02)
    sys.exit(0 if good else 1)


def sections(data: Path, out: Path) -> dict[str, dict[str, Any]]:
    """The section `task` of each, with the files that train and measure."""
    with gzip.open(LABELED["sms-spam"], "rt", encoding="utf-8") as file:
        head, *messages = file
    sst2_head, *phrases = read_lines(data / "SST-2" / "train.tsv")
    sentences = read_lines(data / "CoLA" / "train.tsv")
    single = {"type": "classification", "label": "label", "text": "sentence", "max_length": 128}
    cola = single | {"columns": ["source", "label", "mark", "sentence"]}
    return {
        "sst2": single | divided(out / "sst2", sst2_head, phrases[:4000], test=phrases[4000:14000]),
        "cola": cola | divided(out / "cola", "", *by_fours(sentences)),
        "spam": single | {"text": "message"} | divided(out / "spam", head, *by_fours(messages)),
    }


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def by_fours(rows: list[str]) -> tuple[list[str], list[str]]:
    """All rows but every fourth, and these."""
    return [row for number, row in enumerate(rows) if number % 4], rows[::4]


def divided(folder: Path, head: str, train: list[str], test: list[str]) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    for name, rows in (("train", train), ("dev", test)):
        (folder / f"{name}.tsv").write_text(head + "".join(rows), encoding="utf-8")
    return files(folder)


def trained(run: Path, model: str, section: dict[str, Any], seed: int) -> Path:
    """The folder of a run with its dev rows from the training file."""
    if not (run / "model" / "config.json").is_file():
        task = section | {"dev": None, "dev_fraction": 0.1}
        config = {"output_dir": str(run), "model": model, "seed": seed, "task": task}
        bertcli("finetune", write(run.with_suffix(".yaml"), config), "--overwrite")
    return run


def answers(run: Path, section: dict[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The probabilities [rows, labels] of the rows to measure on, and the numbers of their labels."""
    printed = bertcli("predict", run, "--input", section["dev"])
    rows = [json.loads(line) for line in printed.splitlines()]
    labels = list(rows[0]["probabilities"])
    truth_N = np.array([labels.index(str(row["given_label"])) for row in rows])
    return np.array([list(row["probabilities"].values()) for row in rows]), truth_N


def by_netcal(python: str, probabilities_NC: NDArray[np.float64], truth_N: NDArray[np.int64]) -> float:
    """netcal's figure for the likeliest labels: their probabilities, and 1 where they are right.

    Given all of two labels' probabilities, netcal would measure those of the second label alone.
    """
    right_N = probabilities_NC.argmax(axis=1) == truth_N
    sure = {"probabilities": probabilities_NC.max(axis=1).tolist(), "right": right_N.astype(int).tolist()}
    given = json.dumps(sure)
    done = subprocess.run([python, "-c", NETCAL], input=given, capture_output=True, text=True, check=True)
    return float(done.stdout)


def finds_the_same(scores_N: NDArray[np.float64], truth_N: NDArray[np.bool_]) -> bool:
    """True if both searches find thresholds with the same F1, and with the same recall at a precision."""
    precision_K, recall_K, _ = precision_recall_curve(truth_N, scores_N)
    f1 = np.nanmax(2 * precision_K * recall_K / np.maximum(precision_K + recall_K, 1e-12))
    by_f1 = scores_N >= best_threshold(scores_N, truth_N, None)
    is_good = bool(np.isclose(2 * (by_f1 & truth_N).sum() / (by_f1.sum() + truth_N.sum()), f1))
    by_precision = scores_N >= best_threshold(scores_N, truth_N, PRECISION)
    reached_K = precision_K[:-1] >= PRECISION
    if reached_K.any():
        is_good &= bool(
            np.isclose((by_precision & truth_N).sum() / truth_N.sum(), recall_K[:-1][reached_K].max())
        )
    return is_good


if __name__ == "__main__":
    main()
