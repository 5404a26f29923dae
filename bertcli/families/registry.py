"""Every supported family by its `model_type`, and new models by the name that a config gives them."""

from bertcli.families.albert import ALBERT, NEW_ALBERT
from bertcli.families.bert import BERT, NEW_BERT
from bertcli.families.deberta import DEBERTA, DEBERTA_V2, NEW_DEBERTA, NEW_DEBERTA_V3
from bertcli.families.distilbert import DISTILBERT, NEW_DISTILBERT
from bertcli.families.electra import ELECTRA, NEW_ELECTRA
from bertcli.families.family import Family, FamilyName, Fresh
from bertcli.families.modernbert import MODERNBERT, NEW_MODERNBERT
from bertcli.families.roberta import CAMEMBERT, NEW_ROBERTA, ROBERTA, XLM_ROBERTA

_ALL = (BERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, DISTILBERT, ELECTRA, ALBERT, MODERNBERT, DEBERTA, DEBERTA_V2)
FAMILIES: dict[str, Family] = {family.model_type: family for family in _ALL}
UNNAMED = BERT.model_type
"""The `model_type` of a folder that names none: BERT's first releases are older than the key."""

NEW: dict[FamilyName, Fresh] = {
    "bert": NEW_BERT,
    "roberta": NEW_ROBERTA,
    "albert": NEW_ALBERT,
    "distilbert": NEW_DISTILBERT,
    "electra": NEW_ELECTRA,
    "deberta": NEW_DEBERTA,
    "deberta-v3": NEW_DEBERTA_V3,
    "modernbert": NEW_MODERNBERT,
}
"""`model.family` -> the new model that it makes."""


def new_name(model_type: str) -> FamilyName:
    """`model.family` of a new model of a family; one that `NEW` lacks has RoBERTa's layout."""
    for name, fresh in NEW.items():
        if fresh.family.model_type == model_type:
            return name
    return "roberta"


def fresh_of(model_type: str) -> Fresh:
    """What a family decides for a new model."""
    return NEW[new_name(model_type)]
