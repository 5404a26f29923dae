"""`bertcli finetune CONFIG`: a model folder + a labeled file -> a task model."""

from __future__ import annotations

import json

from bertcli.commands.options import FinetuningConfig, Json, Overwrite, Resume, Set


def finetune(
    config: FinetuningConfig,
    set_: Set = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    json_: Json = False,
) -> None:
    """Fine-tune a model on labeled data.

    Example: bertcli finetune configs/spam.yaml

    To continue a run, its folder is enough: bertcli finetune runs/spam --resume
    """
    from bertcli.distributed import ranks
    from bertcli.training import finetune as run

    with ranks.joined():
        done = run(config, set_ or [], resume, overwrite=overwrite)
        print(json.dumps(done) if json_ else done["model"])
