"""Names and codes of languages."""

from __future__ import annotations

import pytest

from bertcli.config.corpus import CorpusConfig, language_code
from bertcli.config.load import check_config
from bertcli.config.yaml_text import parse_yaml
from bertcli.corpus.documents import split_sentences
from bertcli.system.errors import UserError


@pytest.mark.parametrize(
    ("given", "code"),
    [("de", "de"), ("deu", "de"), ("ger", "de"), ("de-AT", "de"), ("DE", "de"), ("en_GB", "en"),
     ("zh-hans", "zh"), ("cmn", "zh"), ("pt-BR", "pt"), ("nds", "nds"), ("gsw", "gsw"), ("lao", "lo")],
)  # fmt: skip
def test_codes_become_the_shortest(given: str, code: str):
    assert language_code(given) == code


@pytest.mark.parametrize(
    ("given", "code"),
    [("German", "de"), ("english", "en"), ("Deutsch", "de"), ("हिन्दी", "hi"), ("Scottish Gaelic", "gd")],
)
def test_a_name_is_refused_with_its_code(given: str, code: str):
    with pytest.raises(ValueError, match=f"is a language's name; its code is expected: write {code}$"):
        language_code(given)


@pytest.mark.parametrize("given", ["", "e", "qq", "Klingonisch", "1", "en/de"])
def test_what_is_no_code_is_refused(given: str):
    with pytest.raises(ValueError, match="is not an ISO 639 language code"):
        language_code(given)


def test_a_config_splits_by_the_language_it_names():
    corpus = check_config(CorpusConfig, {"files": ["x"], "language": "deu"}, "test")
    text = "Er kam z.B. Montag. Sie nicht."
    assert split_sentences(text, corpus.language) == split_sentences(text, "de")
    with pytest.raises(UserError, match=r"language: .*write de"):
        check_config(CorpusConfig, {"files": ["x"], "language": "German"}, "test")
    assert check_config(CorpusConfig, parse_yaml("{files: x, language: no}", "test"), "test").language == "no"
