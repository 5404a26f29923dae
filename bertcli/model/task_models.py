"""BERT with a head for a labeled task: a row's label, each token's label, or where an answer stands."""

from __future__ import annotations

from torch import Tensor, nn

from bertcli.config.finetune import TaskType
from bertcli.model.architecture import Architecture
from bertcli.model.bert import Bert, first_tokens
from bertcli.model.dropout import Dropout
from bertcli.model.init import initialize
from bertcli.model.pooler import Pooler


class BertForSequences(nn.Module):
    """One vector of logits a row: pooled [CLS], dropout, dense (Devlin et al. 2019, section 4.1).

    Classification and regression; multiple choice with one logit a row (section 4.4).
    """

    def __init__(self, architecture: Architecture, num_labels: int) -> None:
        super().__init__()
        self.architecture = architecture
        self.bert = Bert(architecture)
        self.pooler = Pooler(architecture)
        self.dropout = Dropout(architecture.head_dropout)
        self.classifier = nn.Linear(architecture.hidden, num_labels)
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """Returns logits_BC; the arguments are those of `Bert`."""
        first_BD = self.bert(ids_BT, segments_BT, mask_BT, first_tokens(ids_BT))
        return self.classifier(self.dropout(self.pooler(first_BD)))


class BertForTokens(nn.Module):
    """A vector of logits a token: dropout, dense (Devlin et al. 2019, section 5.3)."""

    def __init__(self, architecture: Architecture, num_labels: int) -> None:
        super().__init__()
        self.architecture = architecture
        self.bert = Bert(architecture)
        self.dropout = Dropout(architecture.head_dropout)
        self.classifier = nn.Linear(architecture.hidden, num_labels)
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """Returns logits_BTC; the arguments are those of `Bert`."""
        return self.classifier(self.dropout(self.bert(ids_BT, segments_BT, mask_BT)))


class BertForSpans(nn.Module):
    """Two logits a token, start and end of the answer (Devlin et al. 2019, section 4.2)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.bert = Bert(architecture)
        self.qa_outputs = nn.Linear(architecture.hidden, 2)
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """Returns logits_BT2, start and end; the arguments are those of `Bert`."""
        return self.qa_outputs(self.bert(ids_BT, segments_BT, mask_BT))


TaskModel = BertForSequences | BertForTokens | BertForSpans


def build_task_model(task: TaskType, architecture: Architecture, num_labels: int) -> TaskModel:
    """BERT with the head of `task`, freshly initialized.

    `num_labels` counts for classification and token-classification; the other tasks fix their outputs.
    """
    if task == "question-answering":
        return BertForSpans(architecture)
    if task == "token-classification":
        return BertForTokens(architecture, num_labels)
    return BertForSequences(architecture, num_labels if task == "classification" else 1)
