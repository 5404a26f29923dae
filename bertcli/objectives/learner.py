"""What learns an objective from text: its model, losses and folders, and its part of card and report."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from torch import Tensor

from bertcli.config.model import ModelConfig
from bertcli.config.run import ModelRecipe, PretrainRecipe
from bertcli.config.schema import PretrainConfig, TrainingConfig
from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import LanguageModel, PretrainingModel
from bertcli.objectives.base import Reference, Task
from bertcli.objectives.registry import OBJECTIVES, Objective
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer

M = TypeVar("M", bound=LanguageModel)


class Learner(ABC, Generic[M]):
    """The models that learn an objective; `config` gives the values that are neither in a folder nor in the
    sizes."""

    save: Callable[..., None]
    """What writes a folder, with the arguments of `folders.model_folder.save_model_folder`."""
    term: str
    """The term by which the model is judged."""
    advice: str
    """What to change if the model learned nothing and nothing in the config stands out."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def start(self, config: PretrainRecipe, tokenizer: Tokenizer) -> M:
        """The model with fresh weights from torch's generator, or with those of `model.init_from`.

        Lines for the user tell which weights were loaded and which are new.

        Raises:
            UserError: the folder cannot be read; the family cannot have these sizes.
        """
        model = config.model
        if model.init_from is not None:
            return self.go_on_from(Path(model.init_from), model)
        vocab_size, pad_id = tokenizer.vocab_size, tokenizer.pad_id
        return self.build(model, new_architecture(model, vocab_size, pad_id, objective=self.objective))

    @abstractmethod
    def build(self, config: ModelConfig, sizes: Architecture) -> M:
        """A model with fresh weights."""

    @abstractmethod
    def go_on_from(self, source: Path, config: ModelRecipe) -> M:
        """The model of a folder, with the dropout of `config`, and with new heads where it has none."""

    @abstractmethod
    def load(self, folder: Path, config: ModelConfig) -> M:
        """The model in a folder of the run, as it was trained. Raises `UserError` for a damaged folder."""

    @abstractmethod
    def load_words(self, folder: Path, config: ModelConfig) -> PretrainingModel | None:
        """The part of a folder's model that predicts words; None if it has none."""

    @abstractmethod
    def task(self, training: TrainingConfig) -> Task:
        """The losses."""

    @abstractmethod
    def references(
        self, sizes: Architecture, unigram_entropy: float, fresh: bool, mask_rate: float
    ) -> tuple[Reference, ...]:
        """The reference of each term.

        Args:
            sizes: those of the model.
            unigram_entropy: the entropy of the corpus in nats: the loss of a model that knows only word
                frequencies.
            fresh: true if the model starts from random weights.
            mask_rate: that of the batches.
        """

    @abstractmethod
    def judge(
        self, reference: Reference, loss: float, accuracy: float, metrics: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """The figures of `term` beside those of a model that uses no context, and whether it is better.

        Args:
            reference, loss, accuracy: those of the term on held-out text.
            metrics: all metrics of the evaluation.
        """

    def card_rows(self, config: PretrainConfig, sizes: Architecture) -> str:
        """The rows of the card's recipe that only this objective has, one line each."""
        del config, sizes
        return ""


def learner_of(objective: str) -> Learner[Any]:
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
    prefix = "" if words is model else "generator."
    copy = PretrainingModel(words.architecture, pair_head=words.pair_head is not None)
    copy.load_state_dict(
        {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}
    )
    return copy
