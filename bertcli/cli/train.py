"""`bertcli pretrain`, `finetune`, `tune`, `verify-resume`: from a config to a model, or a better config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bertcli.cli import options
from bertcli.cli.options import AnyConfig, Config, FinetuningConfig, Json, Overwrite, Resume, Set
from bertcli.config import MOST

if TYPE_CHECKING:
    from bertcli.training.verify_resume import Verification


def pretrain(config: Config, set_: Set = None, resume: Resume = False, overwrite: Overwrite = False) -> None:
    """Pretrain a model on raw text.

    Example: bertcli pretrain quickstart --set training.steps=200

    Continue a run: bertcli pretrain runs/quickstart --resume

    On several devices: torchrun --nproc-per-node 2 -m bertcli pretrain CONFIG
    """
    from bertcli.training import ranks, train

    with ranks.joined():
        print(train.run_pretraining(config, set_ or [], resume, overwrite=overwrite)["model"])


def finetune(
    config: FinetuningConfig,
    set_: Set = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Fine-tune a model on labeled data.

    Example: bertcli finetune spam

    Continue a run: bertcli finetune runs/spam --resume
    """
    from bertcli.training import ranks, train

    with ranks.joined():
        done = train.run_finetuning(config, set_ or [], resume, overwrite=overwrite)
        print(json.dumps(done) if json_ else done["model"])


def tune(
    config: FinetuningConfig,
    set_: Set = None,
    minutes: float | None = options.option(
        None, "Time that the search may take. Default: 60, or as before with --resume.", min=0.1, max=1e6
    ),
    trials: int | None = options.count(
        None, "Largest number of trials. Default: 30, or as before with --resume."
    ),
    resume: Resume = False,
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Search for a better fine-tuning config.

    Trials are compared on the dev data. Each trial is a run of bertcli finetune with another learning rate,
    epochs, batch size, layer decay or number of frozen layers. Models of whole texts also get another
    pooling, long texts another length. The first trial is CONFIG itself. A trial that is behind most others
    is ended early. At the end CONFIG and the best trial are run with fresh seeds, which shows whether the
    gain is more than chance.

    All files are in the folder output_dir with -tune at its end: best.yaml, the recommended config, and
    report.html, which shows what was tried. It needs Optuna: pip install 'bertcli[tune]'.

    Example: bertcli tune spam --minutes 20

    Continue a search: bertcli tune runs/spam-tune --resume
    """
    from bertcli.advice.tune import tune as search
    from bertcli.training import ranks

    limits = {"minutes": None if minutes is None else options.number(minutes), "trials": trials}
    with ranks.joined():
        found = search(config, set_ or [], resume=resume, overwrite=overwrite, **limits)
        print(json.dumps(found) if json_ else found["config"])


def verify_resume(
    config: AnyConfig,
    set_: Set = None,
    steps: int = options.count(40, "Number of steps of each run, at most the config's own."),
    kills: int = options.count(5, "Number of times that the second run is killed."),
    seed: int = options.option(0, "Seed of the random moments of the kills.", min=0, max=MOST),
    folder: Path | None = options.option(
        None, "Folder for the files of the runs; default: a temporary folder."
    ),
    json_: Json = False,
) -> None:
    """Prove that a killed and resumed run gives the same result.

    It runs a few steps without a kill. It runs them again with SIGKILLs at random moments and a --resume
    after each, and compares every loss and the final weights, bit by bit. Your output_dir is not touched; the
    disk needs space for six checkpoints. Exit code 0: equal, 1: different.

    Example: bertcli verify-resume quickstart --steps 10 --kills 2
    """
    from bertcli.config.load import load_either_config
    from bertcli.training.verify_resume import verify_resume as verify

    verified = verify(load_either_config(config, set_), steps=steps, kills=kills, seed=seed, parent=folder)
    print(json.dumps(_as_json(verified, seed)) if json_ else _as_text(verified, seed))
    raise typer.Exit(bool(verified.differences))


def _as_json(verified: Verification, seed: int) -> dict[str, Any]:
    return {
        "equal": not verified.differences,
        "steps": verified.steps,
        "rows": verified.rows,
        "seed": seed,
        "kills": [
            {"row": k.moment.row, "seconds": k.moment.seconds, "step": k.step, "where": k.where}
            for k in verified.kills
        ],
        "differences": verified.differences,
        "repeats": verified.repeats,
        "folder": verified.folder and str(verified.folder),
    }


def _as_text(verified: Verification, seed: int) -> str:
    kills = f"killed {len(verified.kills)} times (seed {seed}) in {verified.steps} steps and resumed"
    if not verified.differences:
        return f"equal: {kills}, all {verified.rows} rows of metrics.jsonl and the final weights are the same"
    lines = [f"different: {kills}, the results differ; both runs are kept in {verified.folder}"]
    if not verified.repeats:
        lines.append("two runs without a kill differ as well: arithmetic on this device is not deterministic")
    return "\n  ".join([*lines, *verified.differences])
