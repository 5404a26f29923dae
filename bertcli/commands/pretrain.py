"""`bertcli pretrain CONFIG`: raw text -> vocabulary -> store -> batches -> a model."""

from __future__ import annotations

from bertcli.commands.options import Config, Overwrite, Resume, Set


def pretrain(config: Config, set_: Set = None, resume: Resume = False, overwrite: Overwrite = False) -> None:
    """Pretrain a model on raw text.

    Example: bertcli pretrain configs/quickstart.yaml --set training.steps=200

    To continue a run, its folder is enough: bertcli pretrain runs/quickstart --resume

    On several devices: torchrun --nproc-per-node 2 -m bertcli pretrain CONFIG
    """
    from bertcli.distributed import ranks
    from bertcli.training import pretrain as run

    with ranks.joined():
        print(run(config, set_ or [], resume, overwrite=overwrite)["model"])
