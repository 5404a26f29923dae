"""Every family and every head as ONNX: shapes that were not seen, padding, and the answers to 1,000 texts.

    python scripts/check/onnx_export.py [--families bert deberta-v2 ...] [--kinds encoder masked-lm ...]

Small random models, saved by transformers and exported by bertcli. The outputs of onnxruntime are compared
with bertcli's by `folders.onnx_folder`: one long row, rows of one token, and rows whose last tokens are all
padding. Then both answer 1,000 texts of random words, in batches; of models without a task,
`folders.onnx_folder` compares words for masks, or vectors. A line ends with the file's size relative to
the weights. Needs the test extras; about 20 seconds for each of some 80 lines. Exit code 1 where an answer
differs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
from pathlib import Path

import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.families.registry import FAMILIES
from bertcli.folders.onnx_folder import agreement, export_onnx
from bertcli.folders.onnx_source import NO_TASK, Source, read_source, weight_bytes
from bertcli.inference.inputs import example_of
from bertcli.inference.onnx_model import OnnxModel
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import task_class
from tests.folders.folders import SETTINGS, WORDS, head_of
from tests.parity.families import FIRST, Case, saved, saved_task

TEXTS, WORDS_OF_A_TEXT = 1000, 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--families", nargs="+", default=[case.model_type for case in FIRST])
    parser.add_argument("--kinds", nargs="+")
    options = parser.parse_args()
    transformers.logging.disable_progress_bar()
    good = True
    for case in FIRST:
        for kind in kinds_of(case) if case.model_type in options.families else ():
            if options.kinds is None or kind in options.kinds:
                with tempfile.TemporaryDirectory() as scratch:
                    good &= check(case, kind, Path(scratch))
    sys.exit(0 if good else 1)


def kinds_of(case: Case) -> list[str]:
    """What a folder of the family may hold: heads of `Family.classes`, and tasks of `SETTINGS`."""
    classes = FAMILIES[case.model_type].classes
    heads = [
        kind for kind in ("encoder", "masked-lm", "pretraining", "pairs", "discriminator") if kind in classes
    ]
    # In transformers, no class has the head of DeBERTa-v3's discriminator.
    heads = [kind for kind in heads if kind == "encoder" or classes[kind] != classes["encoder"]]
    return [*heads, *(kind for kind in SETTINGS if head_of(kind) in classes)]


def check(case: Case, kind: str, scratch: Path) -> bool:
    """Export one model, and print a line on it."""
    begun = time.perf_counter()
    (saved_task if kind in SETTINGS else saved)(scratch / "model", case, kind)
    source = read_source(scratch / "model", encoder_alone=False)
    with contextlib.redirect_stderr(io.StringIO()):
        done = export_onnx(source, scratch / "onnx", sample=None)
    served = OnnxModel(scratch / "onnx" / "onnx" / "model.onnx", source.exported.architecture)
    found = agreement(source, served, texts(source))
    good = found.get("equal", 1.0) == 1.0 and found.get("min_cosine", 1.0) > 1 - 1e-5
    good &= found.get("largest_difference", 0.0) < 1e-4
    told = ", ".join(f"{name} {value:.6g}" for name, value in found.items())
    size = done.bytes / weight_bytes(source.model)
    print(
        f"{case.model_type:<12}{kind:<16}difference {done.difference:.0e}; {told}; size {size:.2f}; "
        f"{time.perf_counter() - begun:.0f} s{'' if good else '   DIFFERS'}",
        flush=True,
    )
    return good


def texts(source: Source) -> list[Example]:
    """Rows of random words, of the number of texts that the task reads."""
    drawn, settings = random.Random(0), source.settings or NO_TASK
    task = task_class(settings.type)
    size = task.num_texts(settings) + 2 * task.has_choices
    groups = (
        [" ".join(drawn.choices(WORDS[5:], k=drawn.randint(1, WORDS_OF_A_TEXT))) for _ in range(size)]
        for _ in range(TEXTS)
    )
    return [example_of(group, "a random text", settings) for group in groups]


if __name__ == "__main__":
    main()
