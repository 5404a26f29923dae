"""Checks for missing inputs, before a run writes anything."""

from __future__ import annotations

from bertcli.checkpoints.metrics_log import check_tensorboard
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.examples.files import check_extras, find_labeled_file
from bertcli.store.corpus_files import find_corpus
from bertcli.store.manifest import MANIFEST
from bertcli.store.matching import output_paths, store_folder
from bertcli.text.sources import find_sources


def check_pretraining(config: PretrainConfig) -> None:
    """Raise `UserError` if files of the corpus, or optional packages that the run needs, are missing, or keys
    contradict each other."""
    if config.checkpoint.keep_best and config.training.schedule == "stable-decay":
        raise UserError(
            "checkpoint.keep_best: not with training.schedule: stable-decay, whose longer runs go back to "
            "before the best model; set it to false"
        )
    check_tensorboard(config.logging.tensorboard)
    if not (store_folder(config) / MANIFEST).is_file():  # with a store, the corpus is not read any more
        find_corpus(config.corpus, output_paths(config))
    find_sources(config.corpus.general or [])


def check_finetuning(config: FinetuneConfig) -> None:
    """Raise `UserError` if a labeled file, or an optional package that the run needs, is missing."""
    check_tensorboard(config.logging.tensorboard)
    for name in (config.task.train, config.task.dev):
        if name is not None:
            check_extras(find_labeled_file(name), config.task.settings)
