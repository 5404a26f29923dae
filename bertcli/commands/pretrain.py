"""`bertcli pretrain CONFIG`: raw text -> vocabulary -> store -> sentence pairs -> MLM + NSP -> a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertcli.terminal import say


def pretrain(
    config: Annotated[Path, typer.Argument(help="A pretraining config (YAML).")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key: training.steps=200."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on exactly where the run stopped.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run in output_dir first.")
    ] = False,
) -> None:
    """Pretrain a BERT on raw text.

    Example: bertcli pretrain configs/quickstart.yaml --set training.steps=200

    On several devices: torchrun --nproc-per-node 2 -m bertcli pretrain CONFIG
    """
    from bertcli.config.load import load_config
    from bertcli.config.schema import PretrainConfig
    from bertcli.distributed import ranks
    from bertcli.runs.pretraining import pretrain as run

    with ranks.joined():
        checked = ranks.on_first(lambda: load_config(PretrainConfig, config, set_))
        model = run(checked, *ranks.after_restart(resume, overwrite))
        say(
            f'the model is in {model}; try: bertcli predict-mask {model} "The [MASK] was dark."',
        )
        print(model)
