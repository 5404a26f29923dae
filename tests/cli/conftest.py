import pytest

from tests.folders.folders import saved_model


@pytest.fixture
def model(tmp_path):
    saved_model(tmp_path / "run" / "model")
    return tmp_path / "run"
