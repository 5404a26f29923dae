"""A paragraph -> its sentences, by the rules of `sentencex` for the language."""

from __future__ import annotations

import sentencex

_OWN_RULES = """
en am ar bg bn ca da de el es fi fr gu hi hy it ja kk kn ml mr my nl pa pl pt ru sk ta te uk
""".split()  # noqa: SIM905
"""The languages of sentencex 1.0. For any other code it uses the rules of a related language, or English."""
_ABBREVIATIONS = """
Dr Prof z.B usw bzw Mr Mrs St vs etc Sr Sra Ud núm pág p.ej Sig dott ecc M Mme av Av dhr mevr bijv enz f.eks
bl.a kl nr inż np tzn itd tj napr atď г ул т.е проф акад вул тов обл д-р гр κ.ά π.χ κ.λπ esim mm د م ഡോ திரு
ዶ/ር տ դ мм тг б.з
""".split()  # noqa: SIM905
_PROBE = " ".join(f"Aa {abbreviation}. Bb cc." for abbreviation in _ABBREVIATIONS) + " x՞ y։ w؟ v。 u！ s;"
"""The places where sentencex splits this text identify the rules that it uses."""


def rules_used(language: str) -> str:
    """The language whose rules `sentencex` uses for `language`: the same, or the nearest that it has."""
    if language in _OWN_RULES:
        return language
    found = split_sentences(_PROBE, language)
    return next((own for own in _OWN_RULES if split_sentences(_PROBE, own) == found), "en")


def split_sentences(paragraph: str, language: str) -> list[str]:
    """The sentences of a paragraph in order, stripped, without empty ones.

    `language`: a code from `config.languages.language_code`.
    """
    raw_sentences = sentencex.segment(language, paragraph)  # pyright: ignore[reportAttributeAccessIssue]
    return [sentence for raw in raw_sentences if (sentence := raw.strip())]
