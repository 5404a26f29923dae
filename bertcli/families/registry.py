"""Every supported family, by its `model_type`."""

from __future__ import annotations

from bertcli.families.bert import BERT
from bertcli.families.family import Family

FAMILIES: dict[str, Family] = {family.model_type: family for family in (BERT,)}
UNNAMED = BERT.model_type
"""The family of a folder without that key: BERT's first releases are older than the key."""
