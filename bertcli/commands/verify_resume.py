"""`bertcli verify-resume CONFIG`: kills a run of a config, resumes it, and says whether it ends the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bertcli.runs.verify_resume import Verification


def verify_resume(
    config: Annotated[Path, typer.Argument(help="A pretraining or fine-tuning config (YAML).")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key: training.batch_size=8."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each run, at most the config's own.")] = 40,
    kills: Annotated[int, typer.Option(min=1, help="How often the second run is killed.")] = 5,
    seed: Annotated[int, typer.Option(help="Draws the moments of the kills.")] = 0,
    folder: Annotated[
        Path | None, typer.Option(help="Where the runs may put their files; by default a temporary place.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="The verified as one JSON object.")] = False,
) -> None:
    """Prove on this machine that a killed run of CONFIG ends as an undisturbed one.

    Runs a few steps undisturbed, then again with SIGKILLs at random moments and a --resume after each, and
    compares every loss and the final weights, bit by bit. Your output_dir is not touched; the disk needs
    room for six checkpoints. Exit code 0: equal, 1: different.

    Example: bertcli verify-resume configs/quickstart.yaml --steps 10 --kills 2
    """
    from bertcli.config.either import load_either_config
    from bertcli.runs.verify_resume import verify_resume as verify

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
    lines = [f"different: {kills}, the run ended otherwise; both are kept in {verified.folder}"]
    if not verified.repeats:
        lines.append("two undisturbed runs differ as well: this device does not repeat its arithmetic")
    return "\n  ".join([*lines, *verified.differences])
