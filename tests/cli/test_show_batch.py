from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.small_runs import small_config, write_config

Bertcli = Callable[..., tuple[int, str, str]]
FIELDS = {
    *(
        "batches",
        "rows",
        "tokens",
        "source_shares",
        "label_shares",
        "same_document_share",
        "fill",
        "masked_share",
    ),
    *("masked_share_by_tenth", "mask_split", "special_masked", "unk_rate", "tokens_per_word", "stream_hash"),
}


@pytest.fixture
def config(corpus: Path, tmp_path: Path) -> Path:
    return write_config(tmp_path / "c.yaml", small_config(corpus, tmp_path / "run"))


def test_pairs_are_printed_with_their_labels(config: Path, run_bertcli: Bertcli) -> None:
    code, out, _ = run_bertcli("show-batch", config, "-n", 3)
    assert code == 0
    shown = out.strip().split("\n\n")
    assert shown[0].startswith("as written: ")
    assert "\nas read:    " in shown.pop(0)
    assert len(shown) == 3
    assert all(pair.startswith(("IsNext: [CLS]", "NotNext: [CLS]")) for pair in shown)


def test_pairs_as_json(config: Path, run_bertcli: Bertcli) -> None:
    _, out, _ = run_bertcli("show-batch", config, "-n", 2, "--json")
    line, *pairs = [json.loads(line) for line in out.splitlines()]
    assert set(line) == {"written", "read", "unk_rate"}
    assert [set(pair) for pair in pairs] == [{"label", "text"}] * 2


def test_statistics_have_their_fields_and_do_not_depend_on_workers(
    config: Path, run_bertcli: Bertcli
) -> None:
    measured = []
    for override in ("data.workers=0", "data.workers=2", "training.micro_batch_size=3"):
        options = ("--set", override, "--stats", "--batches", 5, "--json")
        measured.append(json.loads(run_bertcli("show-batch", config, *options)[1]))
    assert set(measured[0]) == FIELDS
    assert measured[0]["rows"] == 40
    assert len({each["stream_hash"] for each in measured}) == 1


def test_statistics_as_a_table(config: Path, run_bertcli: Bertcli) -> None:
    lines = run_bertcli("show-batch", config, "--stats", "--batches", 2)[1].splitlines()
    assert {line.split()[0] for line in lines} == FIELDS
    assert "label_shares            IsNext 0.5000 NotNext 0.5000" in lines
