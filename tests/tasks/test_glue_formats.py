"""Each GLUE config reads rows in the very format of the task's published files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.samples import CONFIGS
from bertcli.tasks.files import read_examples
from tests.tasks.reading import write

PARSED = "sentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
MNLI = f"index\tpromptID\tpairID\tgenre\t{PARSED}\tsentence1\tsentence2\tlabel1"

FILES: dict[str, tuple[str, list[tuple[str, str | None, str | float]]]] = {
    "sst2": (
        "sentence\tlabel\nit 's a charming journey . \t1\nno \" wit \t0\n",
        [("it 's a charming journey . ", None, "1"), ('no " wit ', None, "0")],
    ),
    "cola": (
        "gj04\t1\t\tThe sailors rode the breeze.\n"
        "cj99\t0\t*\tThe more you would want, the less you would eat.\n",
        [
            ("The sailors rode the breeze.", None, "1"),
            ("The more you would want, the less you would eat.", None, "0"),
        ],
    ),
    "mrpc": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        "1\t1355540\t1355592\tHe said it doesn 't fit .\t\" It does not fit .\n"
        '0\t2029631\t2029565\tHe hated it .\tHis wife " agreed " .\n',
        [
            ("He said it doesn 't fit .", '" It does not fit .', "1"),
            ("He hated it .", 'His wife " agreed " .', "0"),
        ],
    ),
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain-captions\tMSRvid\t2012test\t0000\tnone\tnone\tA man dances.\tA man is dancing.\t5.000\n"
        '1\tmain-news\theadlines\t2015\t0001\tnone\tnone\t"Rain", he said\tSnow\t0\n',
        [("A man dances.", "A man is dancing.", 5.0), ('"Rain", he said', "Snow", 0.0)],
    ),
    "rte": (
        "index\tsentence1\tsentence2\tlabel\n"
        "0\tDana Reeve has died.\tReeve had an accident.\tnot_entailment\n"
        '1\t"It is," he said.\tHe said so.\tentailment\n',
        [
            ("Dana Reeve has died.", "Reeve had an accident.", "not_entailment"),
            ('"It is," he said.', "He said so.", "entailment"),
        ],
    ),
    "mnli": (
        f"{MNLI}\tgold_label\n"
        "0\t31193\t31193n\tgovernment\t( a )\t( b )\t(ROOT a)\t(ROOT b)\t"
        "It skims.\tIt has two.\tneutral\tneutral\n",
        [("It skims.", "It has two.", "neutral")],
    ),
    "qnli": (
        "index\tquestion\tsentence\tlabel\n"
        '0\tWhen was it?\t" In 1900 , they said .\tentailment\n1\tWho?\tNobody.\tnot_entailment\n',
        [("When was it?", '" In 1900 , they said .', "entailment"), ("Who?", "Nobody.", "not_entailment")],
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        '133273\t213221\t213222\tHow is life?\tWhat is "life"?\t0\n'
        "402555\t536040\t536041\tHow do I?\tHow can I?\t1\n",
        [("How is life?", 'What is "life"?', "0"), ("How do I?", "How can I?", "1")],
    ),
    "wnli": (
        "index\tsentence1\tsentence2\tlabel\n"
        "0\tI stuck a pin through a carrot. It had a hole.\tThe carrot had a hole.\t1\n",
        [("I stuck a pin through a carrot. It had a hole.", "The carrot had a hole.", "1")],
    ),
}


def read(task: str, path: Path, labeled: bool) -> list[tuple[str, str | None, str | float | None]]:
    config = load_config(FinetuneConfig, Path(f"glue/{task}"))
    examples = read_examples(path, config.task.settings, labeled, config.task.skip_bad)
    return [(each.texts[0], [*each.texts, None][1], each.label) for each in examples]


def test_there_is_a_config_for_each_task():
    assert {name for name in CONFIGS if name.startswith("glue/")} == {f"glue/{task}" for task in FILES}


@pytest.mark.parametrize("task", FILES)
def test_the_published_format(tmp_path: Path, task: str):
    text, expected = FILES[task]
    assert read(task, write(tmp_path / "train.tsv", text), labeled=True) == expected


def test_dev_files_of_mnli_have_more_columns(tmp_path: Path):
    text = (
        f"{MNLI}\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        "0\t63735\t63735n\tslate\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tIt is new.\tAll like it.\tneutral\t"
        "entailment\tneutral\tneutral\tneutral\tneutral\n"
    )
    path = write(tmp_path / "dev_matched.tsv", text)
    assert read("mnli", path, labeled=True) == [("It is new.", "All like it.", "neutral")]


def test_rows_of_qqp_that_lack_fields_are_left_out(tmp_path: Path):
    text, expected = FILES["qqp"]
    path = write(tmp_path / "train.tsv", text + "12\t13\t14\tHow is it\n")
    assert read("qqp", path, labeled=True) == expected


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        ("cola", "index\tsentence\n0\tBill whistled.\n", ("Bill whistled.", None, None)),
        ("sst2", "index\tsentence\n0\tuneasy mishmash\n", ("uneasy mishmash", None, None)),
        ("rte", "index\tsentence1\tsentence2\n0\tIt is.\tIt was.\n", ("It is.", "It was.", None)),
        ("qqp", "id\tquestion1\tquestion2\n0\tWhy?\tWhy not?\n", ("Why?", "Why not?", None)),
    ],
)
def test_test_files_have_no_labels(tmp_path: Path, task: str, text: str, expected: tuple):
    assert read(task, write(tmp_path / "test.tsv", text), labeled=False) == [expected]
