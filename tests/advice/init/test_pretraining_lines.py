"""The comments of a written config say what is true of its values."""

from __future__ import annotations

import pytest

from bertcli.advice.init.amount import Amount, Prepared
from bertcli.advice.init.corpus import CorpusLook
from bertcli.advice.init.fit_pretraining import TOKENS_PER_WEIGHT, PretrainingFit
from bertcli.advice.init.pretraining_lines import PretrainingPlan, pretraining_written
from bertcli.advice.init.written import Request
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from tests.advice.init.files import speed


def written(
    preset: str = "base",
    is_enough: bool = True,
    ends_early: bool = False,
    language: str = "en",
) -> str:
    """The summary and the config, with each comment on one line."""
    corpus = {"files": ["a.txt"], "language": language}
    value = {"output_dir": "runs/x", "corpus": corpus, "tokenizer": {"vocab_size": 400}}
    config = check_config(PretrainConfig, value, "test")
    plan = PretrainingPlan(
        look=CorpusLook(config.corpus),
        amount=Amount(1, 1e6, 40, words=1e5, is_exact=True, one_sentence=0.0),
        share=1.0,
        longest=128.0,
        objective=None,
        config=config,
        prepared=Prepared(config, 1.0, 1e6, heldout_tokens=1e5, heldout_fraction=0.05, unk_rate=0.0),
        fit=PretrainingFit(
            preset,
            max_length=128,
            steps=1000,
            batch_size=32,
            seconds=60.0,
            tokens=4e6,
            reads=1.0,
            is_enough=is_enough,
            ends_early=ends_early,
            speed=speed(0.1, 1000),
        ),
        started=1.0,
        request=Request(minutes=1.0),
    )
    result = pretraining_written(plan)
    return " ".join("\n".join([*result.summary, result.text]).replace("#", " ").split())


ENOUGH = (
    f"the largest that reads {TOKENS_PER_WEIGHT} tokens for each of its weights in the time, for which the "
    "text is enough"
)
SMALLEST = "the smallest; the text or the time is not enough for a larger one"


@pytest.mark.parametrize(
    ("preset", "is_enough", "ends_early", "reason"),
    [
        ("large", True, False, ENOUGH),
        ("small", True, False, f"{ENOUGH}; or medium"),
        ("small", False, True, "the largest for which the text and the time are enough"),
        ("tiny", False, True, SMALLEST),
        ("tiny", True, False, SMALLEST),
    ],
)
def test_a_preset_is_called_the_largest_only_where_it_is(
    preset: str, is_enough: bool, ends_early: bool, reason: str
) -> None:
    text = written(preset, is_enough=is_enough, ends_early=ends_early)
    above, beside = f"{reason} preset: {preset} training:", f"preset: {preset} {reason} training:"
    assert above in text or beside in text


@pytest.mark.parametrize("language", ["tr", "az", "lt", "en"])
def test_rules_of_lower_case_that_a_language_has_of_its_own_are_said(language: str) -> None:
    text = written(language=language)
    rules = f"by the rules of {language}: "
    assert (f"note: the vocabulary is lower-cased, {rules}" in text) == (language != "en")
    assert (rules in text.partition("tokenizer: ")[2]) == ("lowercase: true" in text) == (language != "en")
