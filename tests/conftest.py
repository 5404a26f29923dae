from __future__ import annotations

import os
from pathlib import Path

# The models of the suite are too small for two threads to help, and the suite runs on all cores already.
# Set before torch is imported, and passed on to the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from hypothesis import settings

from tests.small_runs import write_corpus

settings.register_profile("bertcli", deadline=None)  # a speed is a benchmark, never a test
settings.load_profile("bertcli")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small English corpus of 40 documents; stores may be built beside it."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt")
