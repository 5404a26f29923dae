"""Every supported family, by its `model_type`."""

from __future__ import annotations

from bertcli.families.albert import ALBERT
from bertcli.families.bert import BERT
from bertcli.families.deberta import DEBERTA, DEBERTA_V2
from bertcli.families.distilbert import DISTILBERT
from bertcli.families.electra import ELECTRA
from bertcli.families.family import Family
from bertcli.families.modernbert import MODERNBERT
from bertcli.families.roberta import CAMEMBERT, ROBERTA, XLM_ROBERTA

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (
        *(BERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, DISTILBERT, ELECTRA, ALBERT, MODERNBERT, DEBERTA),
        DEBERTA_V2,
    )
}
UNNAMED = BERT.model_type
"""The family of a folder without that key: BERT's first releases are older than the key."""
