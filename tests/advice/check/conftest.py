from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.builds import write_corpus_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_corpus_folder(tmp_path)
