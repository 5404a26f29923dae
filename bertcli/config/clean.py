"""The section `clean` of a config: what `bertcli clean` mends, and what it leaves out."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bertcli.config.limits import MOST
from bertcli.config.section import Count, Section

Documents = Annotated[int, Field(ge=2, le=MOST)]
Similarity = Annotated[float, Field(gt=0.0, lt=1.0)]


class CleanConfig(Section):
    """The rules of `bertcli clean`, in their order; training reads none of them. null or false: the rule is
    off."""

    mend: bool = True
    """Mend text that was decoded in a wrong encoding (ftfy), bring it to Unicode's form NFC, and remove
    control characters."""
    shared_lines: Documents | None = 10
    """Number of documents of a source from which on a line that all of them have is removed: menus, notices.
    Only the first and the last ten lines of a document are looked at."""
    fewest_words: Count | None = 20
    """Documents with fewer words are left out."""
    repetition: bool = True
    """Leave out documents that repeat themselves, by the limits of Rae et al. 2021 (Gopher), table A1."""
    language: bool = True
    """Leave out documents that are likely not in the language of their source."""
    copies: bool = True
    """Leave out documents with the words of an earlier one. Case, punctuation and line breaks do not
    count."""
    near_copies: Similarity | None = 0.45
    """Similarity from which on a document is left out as a near copy of an earlier one: the runs of three
    words that both have, as a share of those that either has (Broder 1997). A copy in which every tenth word
    was changed has 0.57, documents that share a half have 0.33."""
