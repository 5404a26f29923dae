"""`bertcli pretrain CONFIG`: raw text -> vocabulary -> store -> batches -> a model."""

from __future__ import annotations

from bertcli.commands.options import Config, Overwrite, Resume, Set
from bertcli.terminal import say


def pretrain(config: Config, set_: Set = None, resume: Resume = False, overwrite: Overwrite = False) -> None:
    """Pretrain a model on raw text.

    Example: bertcli pretrain configs/quickstart.yaml --set training.steps=200

    To continue a run, its folder is enough: bertcli pretrain runs/quickstart --resume

    On several devices: torchrun --nproc-per-node 2 -m bertcli pretrain CONFIG
    """
    from bertcli.config.load import load_config
    from bertcli.config.run_config import check_continues
    from bertcli.config.schema import PretrainConfig
    from bertcli.distributed import ranks
    from bertcli.report.write import write_report_if_asked
    from bertcli.runs.first_try import mask_command
    from bertcli.runs.pretraining import pretrain as run
    from bertcli.store.matching import store_folder
    from bertcli.store.token_store import open_store

    with ranks.joined():
        resume, overwrite = ranks.after_restart(resume, overwrite)
        ranks.on_first(lambda: check_continues(config, resume, "pretrain"))
        checked = ranks.on_first(lambda: load_config(PretrainConfig, config, set_))
        model = run(checked, resume, overwrite)
        if ranks.is_first():
            write_report_if_asked(checked)
        say(f"the model is in {model}; try: {mask_command(model, open_store(store_folder(checked)))}")
        print(model)
