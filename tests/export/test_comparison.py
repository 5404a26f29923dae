"""The speeds beside each other are of as many rows as is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bertcli.text.frame import Row
from tests.commands.test_export import exported
from tests.hf.folders import saved_model


def test_a_small_sample_is_read_again_until_there_are_32_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[tuple[int, list[list[int]]]] = []

    def speeds(models: dict[str, Any], rows: Sequence[Row], batch_size: int, pad_id: int) -> dict[str, float]:
        timed.append((batch_size, [list(row.ids) for row in rows]))
        return dict.fromkeys(models, 1.0)

    monkeypatch.setattr("bertcli.export.comparison.rows_per_second", speeds)
    saved_model(tmp_path / "model")
    (tmp_path / "sample.txt").write_text("the cat\na dog sat\nit was dark\n")
    options = ["--encoder", "--int8", "--sample", tmp_path / "sample.txt"]
    exported(tmp_path / "model", tmp_path / "out", *options)
    assert [size for size, _ in timed] == [1, 32]
    for _, rows in timed:
        assert len(rows) == 32
        assert rows[:29] == rows[3:]
