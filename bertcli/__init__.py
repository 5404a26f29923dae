"""bertcli: from raw text to your own BERT and on to predictions.

import bertcli

run = bertcli.pretrain("quickstart")
bertcli.load(run["model"]).fill_mask("The [MASK] was dark.")
"""

from bertcli.api import Model, finetune, load, pretrain, tune
from bertcli.system.errors import UserError

__all__ = ["Model", "UserError", "finetune", "load", "pretrain", "tune"]
