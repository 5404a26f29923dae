"""Finished runs that are looked at, never changed: a test that changes one copies it."""

from pathlib import Path

import pytest

from tests.reports.runs import pretraining, spam


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretraining(tmp_path_factory.mktemp("pretrained"))


@pytest.fixture(scope="session")
def finetuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam(tmp_path_factory.mktemp("finetuned"))
