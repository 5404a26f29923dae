"""`bertcli finetune CONFIG`: a model folder + a labeled file -> a task model."""

from __future__ import annotations

import json

from bertcli.commands.options import FinetuningConfig, Json, Overwrite, Resume, Set
from bertcli.terminal import say


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
    from bertcli.config.finetune import FinetuneConfig
    from bertcli.config.load import load_config
    from bertcli.config.run_config import check_continues
    from bertcli.distributed import ranks
    from bertcli.evaluation.tables import scores_json, scores_table
    from bertcli.report.write import write_report_if_asked
    from bertcli.runs.finetuning import finetune as run
    from bertcli.runs.first_try import predict_command
    from bertcli.runs.seeds import finetune_seeds

    with ranks.joined():
        resume, overwrite = ranks.after_restart(resume, overwrite)
        ranks.on_first(lambda: check_continues(config, resume, "finetune"))
        checked = ranks.on_first(lambda: load_config(FinetuneConfig, config, set_))
        start = finetune_seeds if checked.seeds else run
        done = start(checked, resume, overwrite)
        if done.scores is not None:
            say(scores_table(done.scores))
        if done.verdict is not None:
            say(done.verdict.line)
        if ranks.is_first():
            write_report_if_asked(checked)
        say(f"the model is in {done.model}; try: {predict_command(done.model, done.examples)}")
        scores = scores_json(done.scores) if done.scores else {}
        verdict = {"verdict": done.verdict.as_json()} if done.verdict else {}
        print(json.dumps({"model": str(done.model), **scores, **verdict}) if json_ else done.model)
