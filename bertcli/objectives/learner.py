"""What learns an objective from text: its model, losses and folders, and its part of card and report."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from torch import Tensor

from bertcli.config.model import ModelConfig
from bertcli.config.run import ModelRecipe, PretrainRecipe
from bertcli.config.schema import PretrainConfig, TrainingConfig
from bertcli.folders.config_file import going_on, new_architecture, read_architecture
from bertcli.folders.lengths import changed_positions
from bertcli.folders.model_files import Adapt
from bertcli.folders.model_folder import LoadedModel, load_model_folder, save_model_folder
from bertcli.model.architecture import Architecture
from bertcli.model.init import expected_first_mlm_loss, look_at_neighbors
from bertcli.model.pretraining import LanguageModel, PretrainingModel, generator_weights
from bertcli.objectives.base import Reference, Task, words_reference
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import OBJECTIVES, Objective
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.tokenizer.tokenizer import Tokenizer

MARGIN = 0.15
"""Distance in nats from the unigram entropy; a model within it learned only word frequencies."""


class Learner:
    """The learner of masked words, with or without pairs; another objective overrides what differs.

    `config` gives the values that are neither in a folder nor in the sizes.
    """

    save: Callable[..., None] = staticmethod(save_model_folder)
    """What writes a folder, with the arguments of `folders.model_folder.save_model_folder`."""
    term = "mlm"
    """The term by which the model is judged."""
    advice = "take more text, more training.steps or a smaller model.preset"
    """What to change if the model learned nothing and nothing in the config stands out."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def start(self, config: PretrainRecipe, tokenizer: Tokenizer) -> Any:
        """The model with fresh weights from torch's generator, or with those of `model.init_from`.

        Lines for the user tell which weights were loaded and which are new.

        Raises:
            UserError: the folder cannot be read; the family cannot have these sizes.
        """
        model = config.model
        if model.init_from is not None:
            source = Path(model.init_from)
            loaded = self.go_on_from(source, model)
            for line in changed_positions(read_architecture(source / "config.json"), loaded.architecture):
                say(line)
            return loaded
        vocab_size, pad_id = tokenizer.vocab_size, tokenizer.pad_id
        sizes = new_architecture(model, vocab_size, pad_id, objective=self.objective)
        built = self.build(model, sizes)
        if model.initialization == "neighbors":
            look_at_neighbors(built, sizes.init_std)
        return built

    def build(self, config: ModelConfig, sizes: Architecture) -> Any:
        """A `LanguageModel` with fresh weights, with a pair head if the rows are pairs."""
        return PretrainingModel(sizes, pair_head=self.objective.pairs.is_pair)

    def go_on_from(self, source: Path, config: ModelRecipe) -> Any:
        """The model of a folder with dropout, positions and rotary base of `config`, and with new heads where
        it has none."""
        loaded = self._load(source, going_on(config), self.objective.pairs.is_pair)
        say(f"starting from the weights of {source} ({len(loaded.report.loaded)} tensors)")
        if loaded.report.new:
            say(f"  new ({', '.join(loaded.report.new_parts())}): {', '.join(loaded.report.new)}")
        if loaded.report.left_aside:
            say(f"  left aside: {', '.join(loaded.report.left_aside)}")
        return loaded.model

    def load(self, folder: Path, config: ModelConfig) -> Any:
        """The model in a folder of the run, as it was trained, with the heads that are there.

        Raises `UserError` for a damaged folder.
        """
        return self._load(folder).model

    def load_words(self, source: Path, config: ModelRecipe) -> PretrainingModel | None:
        """The part of the model of `go_on_from` that predicts words, without a pair head; None if its folder
        has none."""
        loaded = self._load(source, going_on(config), pairs=False)
        return loaded.model if loaded.report.has("mlm_head") else None

    def _load(self, folder: Path, adapt: Adapt | None = None, pairs: bool | None = None) -> LoadedModel:
        return load_model_folder(folder, pairs=pairs, adapt=adapt, mask_decoder=True)

    def task(self, training: TrainingConfig) -> Task:
        """The losses, here of words and pairs."""
        return MaskedLanguage(self.objective.pairs, training.compile is True)

    def references(
        self, sizes: Architecture, unigram_entropy: float, fresh: bool, mask_rate: float
    ) -> tuple[Reference, ...]:
        """The reference of each term, here of the words, and of the pairs if there are any.

        Args:
            sizes: those of the model.
            unigram_entropy: the entropy of the corpus in nats: the loss of a model that knows only word
                frequencies.
            fresh: true if the model starts from random weights.
            mask_rate: that of the batches.
        """
        words = words_reference(unigram_entropy, expected_first_mlm_loss(sizes) if fresh else None)
        pairs = self.objective.pairs
        if not pairs.is_pair:
            return (words,)
        # A batch has equal numbers of rows with each label.
        loss, accuracy = math.log(len(pairs.labels)), 1 / len(pairs.labels)
        return words, Reference(
            term=pairs.term,
            first_loss=loss if fresh else None,
            chance_loss=loss,
            line=f"{pairs.term} by chance: loss {loss:.3f}, accuracy {accuracy:.0%}; label 0 is "
            f"{pairs.labels[0]}",
            chance_accuracy=accuracy,
        )

    def judge(
        self, reference: Reference, loss: float, accuracy: float, metrics: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """The figures of `term` beside those of a model that uses no context, and whether it is better.

        Args:
            reference, loss, accuracy: those of the term on held-out text.
            metrics: all metrics of the evaluation.
        """
        gain, held_out = reference.chance_loss - loss, f"held-out {self.term} {loss:.3f}"
        alone = f"word frequencies alone ({reference.chance_loss:.3f})"
        if gain > MARGIN:
            times = f"each masked token is {math.exp(gain):.1f} times as likely to be found"
            return f"{held_out} is {gain:.2f} nats better than {alone}: {times}", True
        what = "no better than" if gain > -MARGIN else f"{-gain:.2f} nats worse than"
        if not math.isfinite(loss):
            what = "not a number, far worse than"
        return f"{held_out} is {what} {alone}", False

    def card_rows(self, config: PretrainConfig, sizes: Architecture) -> str:
        """The rows of the card's recipe that only this objective has, one line each."""
        return ""


def learner_of(objective: str) -> Learner:
    """The learner of a value of `data.objective`. Raises `UserError` for `auto`."""
    if objective not in OBJECTIVES:
        raise UserError(
            f"data.objective: {objective}; expected the objective that the run decided: "
            f"{', '.join(OBJECTIVES)}"
        )
    found = OBJECTIVES[objective]
    return resolve_name(found.learned_by)(found)


def words_alone(model: LanguageModel, weights: Mapping[str, Tensor]) -> PretrainingModel:
    """A copy of `model.words` with these full weights of the model, which are not sharded over ranks."""
    words = model.words
    copy = PretrainingModel(words.architecture, pair_head=words.pair_head is not None)
    copy.load_state_dict(weights if words is model else generator_weights(weights))
    return copy
