"""A `.json` file that holds a list of objects, wherever JSON lines are read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tests.finetunes import spam_config, spam_files
from tests.small_runs import small_config, write_config, write_corpus


def test_a_corpus_that_is_a_list_gives_the_store_of_its_lines(run_bertcli, tmp_path: Path) -> None:
    text = write_corpus(tmp_path / "corpus.txt", documents=20)
    rows = [{"text": document} for document in text.read_text(encoding="utf-8").split("\n\n")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "rows.json").write_text(json.dumps(rows, indent=1))
    stores = []
    for name in ("rows.jsonl", "rows.json"):
        (tmp_path / name.replace(".", "-")).mkdir()
        corpus = {"format": "jsonl", "store": str(tmp_path / name.replace(".", "-") / "store")}
        values = small_config(tmp_path / name, tmp_path / "run", corpus=corpus)
        config = write_config(tmp_path / "config.yaml", values)
        for verb in ("check-data", "prepare"):
            code, _, err = run_bertcli(verb, config)
            assert code == 0, err
        stores.append((Path(corpus["store"]) / "train" / "ids.bin").read_bytes())
    assert stores[0] == stores[1]
    (tmp_path / "rows.json").write_text(json.dumps(rows)[:-5])
    code, _, err = run_bertcli("prepare", config, "--overwrite")
    assert (code, "rows.json, line 1, column " in err) == (2, True)
    assert "not JSON: the file ends before its list does; expected a list of objects" in err


def test_labeled_files_that_are_lists(run_bertcli, tmp_path: Path) -> None:
    spam_files(tmp_path)
    task = {}
    for split in ("train", "dev"):
        with open(tmp_path / f"{split}.tsv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        task[split] = str(tmp_path / f"{split}.json")
        Path(task[split]).write_text(json.dumps(rows, indent=4))
    values = spam_config(tmp_path, task=task, training={"epochs": 0.1})
    code, _, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", values))
    assert code == 0, err
    assert "train: 96 rows; ham 79 (82.3%), spam 17 (17.7%)\n" in err
    answers = [
        [
            json.loads(line)["label"]
            for line in run_bertcli("predict", tmp_path / "run", "--input", path)[1].splitlines()
        ]
        for path in (tmp_path / "dev.tsv", tmp_path / "dev.json")
    ]
    assert answers[0] == answers[1]
    assert len(answers[0]) == 32
