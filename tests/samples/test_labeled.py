"""The labeled samples are whole, and no larger than a package may be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.samples import LABELED
from bertcli.tasks.files import find_labeled_file, read_examples
from bertcli.tasks.labels import check_labels, label_set


def test_messages():
    config = load_config(FinetuneConfig, Path("spam"))
    settings = config.task.settings
    examples = list(read_examples(find_labeled_file(config.task.train), settings, labeled=True))
    assert Counter(each.label for each in examples) == {"ham": 4827, "spam": 747}


def test_entities():
    config = load_config(FinetuneConfig, Path("ner"))
    names = (config.task.train, config.task.dev, "wnut17-test")
    files = [
        list(read_examples(find_labeled_file(name or ""), config.task.settings, labeled=True))
        for name in names
    ]
    assert [len(examples) for examples in files] == [3394, 1009, 1287]
    labels = label_set(files[0], config.task.settings)
    assert len(labels) == 13
    for examples in files:
        check_labels(examples, labels, config.task.settings)


@pytest.mark.parametrize("name", LABELED)
def test_each_sample_has_its_license_and_source(name: str):
    folder = LABELED[name].parent
    assert "CC BY 4.0" in (folder / "LICENSE.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in (folder / "SOURCE.md").read_text(encoding="utf-8")
    assert LABELED[name].read_bytes()[4:8] == bytes(4), "made without a time: the same data, the same bytes"


def test_the_samples_are_small():
    assert sum(path.stat().st_size for path in LABELED.values()) < 1_000_000
