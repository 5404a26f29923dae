"""Finished runs that are looked at, never changed: a test that changes one copies it."""

from pathlib import Path

import pytest

from tests.reports.runs import ATTACK, pretraining, spam


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a folder whose name would like to be a part of the page."""
    folder = tmp_path_factory.mktemp("pretrained") / ATTACK.replace("/", "")
    folder.mkdir()
    return pretraining(folder)


@pytest.fixture(scope="session")
def finetuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam(tmp_path_factory.mktemp("finetuned"))
