from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.folders.folders import saved_model
from tests.inference.serve.serving import Client, opened, serving

NAMES = ("multi-label", "classification", "regression", "tokens", "questions", "choices", "vectors", "words")


@pytest.fixture(scope="session")
def folders(models: Path) -> Path:
    """A folder with a model of every task, of vectors, and of masked words."""
    saved_model(models / "words")
    return models


@pytest.fixture(scope="module")
def client(folders: Path) -> Iterator[Client]:
    """A server of all these models."""
    with serving(opened(folders, *NAMES)) as client:
        yield client
