"""The page of `bertcli clean`: what each rule took, by source, with examples of each to judge it by."""

from collections.abc import Mapping
from typing import Any

from bertcli.reports.page import page

_RULES = {
    "mend": "Text decoded in a wrong encoding, and control characters, were mended.",
    "shared_lines": "Lines at the edges of documents that many documents have were removed.",
    "fewest_words": "Documents with too few words were left out.",
    "repetition": "Documents that repeat themselves were left out.",
    "language": "Documents that are likely in another language were left out.",
    "copies": "Documents with the words of an earlier one were left out.",
    "near_copies": "Documents that are nearly an earlier one were left out.",
}
"""A key of the section `clean` -> what the rule did."""


def cleaning_page(account: Mapping[str, Any]) -> str:
    """The HTML document of an account, as `corpus.clean.run` makes it."""
    rules = [
        {
            "name": rule,
            "meaning": meaning,
            "sources": account["rules"][rule],
            "documents": sum(each["documents"] for each in account["rules"][rule].values()),
            "examples": account["examples"][rule],
        }
        for rule, meaning in _RULES.items()
    ]
    return page("What was cleaned", "cleaning.html.j2", {"account": account, "rules": rules})
