"""What a user sees of `bertcli finetune`: the scores, and errors with exit code 2 and no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.finetunes import spam_config, spam_files
from tests.small_runs import read_rows, write_config

Bertcli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def config(files: Path, tmp_path: Path) -> dict[str, Any]:
    """Of a single step; its output_dir is `tmp_path / "run"`."""
    return spam_config(files, output_dir=str(tmp_path / "run"), training={"epochs": 0.1})


def refused(run_bertcli: Bertcli, tmp_path: Path, config: dict[str, Any], *options: str) -> str:
    code, out, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", config), *options)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    return err.partition("error: ")[2]


def test_the_model_goes_to_stdout_and_the_rest_to_stderr(
    run_bertcli: Bertcli, config: dict[str, Any], tmp_path: Path
) -> None:
    path = write_config(tmp_path / "config.yaml", config)
    code, out, err = run_bertcli("finetune", path)
    model = tmp_path / "run" / "model"
    assert (code, out) == (0, f"{model}\n")
    for line in (
        "train: 96 rows; ham 79 (82.3%), spam 17 (17.7%)",
        "dev: 32 rows; ham 27 (84.4%), spam 5 (15.6%)",
        "lengths: median 62 tokens, 95 % up to 138, longest 237; 78.1% are cut at 32 (task.max_length)",
        "  new: classifier.bias, classifier.weight",
        "best by accuracy: step 1",
    ):
        assert f"{line}\n" in err
    assert f"the model is in {model}; try: bertcli predict {model} '" in err
    assert "in train as well" in err
    assert "\nconfusion_matrix" in err
    said = (
        "accuracy 0.8438, which is no better than always answering 'ham' (0.8438): nothing useful was learned"
    )
    assert f"\nwarning: {said}. What may help: raise training.epochs" in err
    assert f"\n{said[0].upper()}{said[1:]}.\n" in (model / "README.md").read_text()
    code, out, _ = run_bertcli("finetune", path, "--overwrite", "--json", "--set", "training.epochs=0.2")
    assert code == 0
    scores = json.loads(out)
    assert scores["model"] == str(model)
    assert {"loss", "accuracy", "f1", "macro_f1", "per_class", "confusion_matrix"} <= scores.keys()
    assert scores["verdict"]["better"] is False
    assert scores["verdict"]["baseline"] == {"accuracy": 27 / 32}


def test_going_on_with_other_labels_says_which_outputs_are_kept(
    run_bertcli: Bertcli, config: dict[str, Any], files: Path, tmp_path: Path
) -> None:
    assert run_bertcli("finetune", write_config(tmp_path / "first.yaml", config))[0] == 0
    more = (files / "train.tsv").read_text(encoding="utf-8") + "advert\tBuy two, get one\n" * 2
    (tmp_path / "more.tsv").write_text(more, encoding="utf-8")
    changes = {"model": config["output_dir"], "output_dir": str(tmp_path / "second")}
    task = config["task"] | {"train": str(tmp_path / "more.tsv")}
    path = write_config(tmp_path / "second.yaml", config | changes | {"task": task})
    code, _, err = run_bertcli("finetune", path)
    assert code == 0
    assert "\n  kept the outputs of ham, spam; new: advert\n" in err
    assert "  new: classifier" not in err


def test_f1_says_of_which_label_it_is_and_another_can_be_chosen(
    run_bertcli: Bertcli, config: dict[str, Any], files: Path, tmp_path: Path
) -> None:
    task = config["task"] | {"positive_label": "ham", "metric": "f1"}
    path = write_config(tmp_path / "config.yaml", config | {"task": task})
    code, out, err = run_bertcli("finetune", path, "--json")
    scores = json.loads(out)
    assert (code, scores["positive_label"]) == (0, "ham")
    assert scores["f1"] == scores["per_class"]["ham"]["f1"] > 0.9
    assert f"\nf1 of ham                   {scores['f1']:.4f}\n" in err
    assert f"step 1 held out: loss {scores['loss']:.3f} | accuracy 0.8438 | f1 of ham 0.9153 |" in err
    assert "\nbest by f1 of ham: step 1\n" in err
    assert f"| f1 of ham | {scores['f1']:.4f} |" in (tmp_path / "run" / "model" / "README.md").read_text()
    (row,) = read_rows(tmp_path / "run" / "metrics.jsonl", "heldout")
    assert (row["positive_label"], row["f1"]) == ("ham", scores["f1"])

    measure = ["evaluate", tmp_path / "run", "--data", files / "dev.tsv"]
    _, out, _ = run_bertcli(*measure, "--json")
    assert json.loads(out)["positive_label"] == "ham"  # it is saved with the model
    _, out, _ = run_bertcli(*measure, "--positive-label", "spam")
    assert "\nf1 of spam                  0.0000\n" in out
    code, _, err = run_bertcli(*measure, "--positive-label", "eggs")
    wrong = "'eggs' is not a label; the labels are ham, spam\n"
    assert (code, err.splitlines(keepends=True)[-1]) == (2, f"error: --positive-label: {wrong}")
    config["task"]["positive_label"] = "eggs"
    config["output_dir"] = str(tmp_path / "other")
    assert refused(run_bertcli, tmp_path, config) == f"task.positive_label: {wrong}"


def test_several_seeds(run_bertcli: Bertcli, config: dict[str, Any], tmp_path: Path) -> None:
    path = write_config(tmp_path / "config.yaml", config | {"seeds": [1, 2]})
    code, out, err = run_bertcli("finetune", path, "--json")
    assert code == 0
    assert json.loads(out)["model"] == str(tmp_path / "run" / "model")
    assert "seed 2 (2 of 2)\n" in err
    assert "\naccuracy                    0." in err
    assert "\nf1 of spam                  0." in err
    assert " ± " in err
    assert "seed 2: warning: accuracy " in err


def test_folds_and_the_labels_that_they_doubt(
    run_bertcli: Bertcli, config: dict[str, Any], tmp_path: Path
) -> None:
    config["task"]["dev"] = None
    path = write_config(tmp_path / "config.yaml", config | {"folds": 2})
    code, out, err = run_bertcli("finetune", path, "--json")
    assert code == 0
    done = json.loads(out)
    assert done["model"] == str(tmp_path / "run" / "model")
    assert done["folds"]["runs"].keys() == {"1", "2"}
    assert {"mean", "std"} == done["folds"]["metrics"]["accuracy"].keys()
    assert "fold 2 (2 of 2)\n" in err
    assert "of all 96 out-of-fold answers: 0." in err
    assert "the final model learns from all rows for 0.3" in err
    evaluate = ["evaluate", tmp_path / "run", "--suspect-labels", tmp_path / "suspects.tsv"]
    code, out, err = run_bertcli(*evaluate, "--json")
    assert (code, json.loads(out)["accuracy"]) == (0, done["accuracy"])
    assert "rows with a likely wrong label are in" in err
    rows = Path(config["task"]["train"]).read_bytes()
    code, _, err = run_bertcli(*evaluate[:-1], config["task"]["train"])
    assert (code, "is the input file; write to another file" in err) == (2, True)
    assert Path(config["task"]["train"]).read_bytes() == rows
    code, text, _ = run_bertcli(*evaluate)
    assert (code, f"accuracy                    {done['accuracy']:.4f}" in text) == (0, True)
    (tmp_path / "run" / "out-of-fold.jsonl").write_text('{"where": 3}\n')
    code, _, err = run_bertcli(*evaluate)
    assert (code, "out-of-fold.jsonl: damaged" in err, "--resume" in err) == (2, True, True)


def test_a_run_is_never_overwritten_unasked(
    run_bertcli: Bertcli, config: dict[str, Any], tmp_path: Path
) -> None:
    run_bertcli("finetune", write_config(tmp_path / "config.yaml", config))
    error = refused(run_bertcli, tmp_path, config)
    assert error.startswith(f"output_dir {tmp_path / 'run'} already has a run: --resume continues it")
    error = refused(run_bertcli, tmp_path, config, "--resume", "--overwrite")
    assert error == "give --resume or --overwrite, not both\n"


def test_a_resume_wants_the_data_that_the_run_began_with(
    run_bertcli: Bertcli, config: dict[str, Any], tmp_path: Path
) -> None:
    data = tmp_path / "train.tsv"
    text = Path(config["task"]["train"]).read_text()
    data.write_text(text)
    config["task"]["train"] = str(data)
    run_bertcli("finetune", write_config(tmp_path / "config.yaml", config))
    data.write_text(text + "ham\tone more\n")
    assert f"cannot resume: {data} changed since the start" in refused(
        run_bertcli, tmp_path, config, "--resume"
    )
    data.write_text(text + "eggs\tone more\n")
    error = refused(run_bertcli, tmp_path, config, "--resume")
    assert (
        "cannot resume: the labels are eggs, ham, spam now, and were ham, spam at the start of the run"
        in error
    )


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (
            "task",
            {"max_length": 65},
            "task.max_length: 65 tokens, but {files}/bert has 64 positions; give at",
        ),
        (
            "task",
            {"metric": "bleu"},
            "task.metric: 'bleu' is not a metric of this task; give one of loss, accuracy, f1, ",
        ),
        ("task", {"train": "{files}/dev.tsv.gone"}, "{files}/dev.tsv.gone: no such file; did you mean"),
        (
            "task",
            {"label": "labels"},
            "{files}/train.tsv: task.label: no column 'labels'; did you mean 'label'",
        ),
        ("training", {"freeze_layers": 9}, "training.freeze_layers: 9, but the model has only 2 layers"),
        ("model", "{files}/nowhere", "{files}/nowhere: no such folder. MODEL is a run folder"),
        (
            "model",
            "{files}",
            "{files}: not a complete model folder; missing: config.json (the sizes); weights",
        ),
    ],
)
def test_what_cannot_run_is_refused_in_words(
    run_bertcli: Bertcli,
    config: dict[str, Any],
    files: Path,
    tmp_path: Path,
    section: str,
    values: Any,
    message: str,
) -> None:
    def placed(value: Any) -> Any:
        return value.format(files=files) if isinstance(value, str) else value

    if isinstance(values, dict):
        config[section] |= {key: placed(value) for key, value in values.items()}
    else:
        config[section] = placed(values)
    assert refused(run_bertcli, tmp_path, config).startswith(placed(message))


def test_a_label_to_be_judged_by_must_have_been_learned(
    run_bertcli: Bertcli, config: dict[str, Any], files: Path, tmp_path: Path
) -> None:
    dev = tmp_path / "dev.tsv"
    dev.write_text((files / "dev.tsv").read_text() + "eggs\twith everything\n")
    config["task"]["dev"] = str(dev)
    error = refused(run_bertcli, tmp_path, config)
    assert f"'eggs': 1 times, first in {dev}, line 34" in error


def test_numbers_may_be_labels_with_weights(
    run_bertcli: Bertcli, config: dict[str, Any], files: Path, tmp_path: Path
) -> None:
    for name in ("train", "dev"):
        text = (files / f"{name}.tsv").read_text().replace("ham\t", "0\t").replace("spam\t", "1\t")
        (tmp_path / f"{name}.tsv").write_text(text)
        config["task"][name] = str(tmp_path / f"{name}.tsv")
    config["task"]["class_weights"] = {0: 1, 1: 4.5}
    path = write_config(tmp_path / "config.yaml", config)
    for options in ((), ("--resume",)):
        code, _, err = run_bertcli("finetune", path, *options)
        assert code == 0, err
