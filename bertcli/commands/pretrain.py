"""`bertcli pretrain CONFIG`: raw text -> vocabulary -> store -> batches -> a model."""

from __future__ import annotations

from bertcli.commands.options import Config, Overwrite, Resume, Set
from bertcli.terminal import say


def pretrain(config: Config, set_: Set = None, resume: Resume = False, overwrite: Overwrite = False) -> None:
    """Pretrain a model on raw text.

    Example: bertcli pretrain configs/quickstart.yaml --set training.steps=200

    On several devices: torchrun --nproc-per-node 2 -m bertcli pretrain CONFIG
    """
    from bertcli.config.load import load_config
    from bertcli.config.schema import PretrainConfig
    from bertcli.distributed import ranks
    from bertcli.hf.rtd_folder import GENERATOR
    from bertcli.report.write import write_report_if_asked
    from bertcli.runs.pretraining import pretrain as run

    with ranks.joined():
        checked = ranks.on_first(lambda: load_config(PretrainConfig, config, set_))
        model = run(checked, *ranks.after_restart(resume, overwrite))
        if ranks.is_first():
            write_report_if_asked(checked)
        words = model / GENERATOR if (model / GENERATOR).is_dir() else model
        say(f'the model is in {model}; try: bertcli predict-mask {words} "The [MASK] was dark."')
        print(model)
