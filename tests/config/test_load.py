from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, differences, load_config, parse_yaml, save_config
from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError

MINIMAL = "output_dir: run\ncorpus: {files: [classics]}\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_problems_are_listed_at_once_with_the_nearest_names(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "corpus: {fles: [a]}\ntrainning: {}\ntraining: {stepz: 3, batch_size: many, micro_batch_size: few}\n",
    )
    with pytest.raises(UserError) as error:
        load_config(PretrainConfig, path)
    lines = str(error.value).split("\n")
    assert lines[0] == f"{path}: 7 problems in the config:"
    text = str(error.value)
    for problem in (
        "output_dir: missing; it has no default",
        "corpus.files: missing; it has no default",
        "corpus.fles: unknown key; did you mean corpus.files?",
        "trainning: unknown key; did you mean training?",
        "training.stepz: unknown key; did you mean training.steps?",
        "training.batch_size: input should be a valid integer, unable to parse string",
        "unable to parse string as an integer (or auto), got 'few'",
    ):
        assert problem in text


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("steps=10", "steps: unknown key; did you mean training.steps?"),
        ("stepz=10", "stepz: unknown key; did you mean training.steps?"),
        ("max_length=64", "max_length: unknown key; did you mean data.max_length?"),
        ("data.preset=tiny", "data.preset: unknown key; did you mean model.preset?"),
        ("training.seed=1", "training.seed: unknown key; did you mean seed?"),
        (
            "every_steps=3",
            "every_steps: unknown key; did you mean evaluation.every_steps, checkpoint.every_steps or "
            "logging.every_steps?",
        ),
        (
            "distillation.temperatur=1",
            "distillation.temperatur: unknown key; did you mean distillation.temper",
        ),
    ],
)
def test_a_key_of_another_section_is_named_with_its_section(tmp_path: Path, override: str, hint: str) -> None:
    with pytest.raises(UserError) as error:
        load_config(PretrainConfig, write(tmp_path, MINIMAL), [override])
    assert hint in str(error.value)


def test_a_key_unlike_any_other_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data.xyzzy: unknown key; known here: objective, max_length"):
        load_config(PretrainConfig, write(tmp_path, MINIMAL + "data: {xyzzy: 1}\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corpus: {files: [a\n", r"config.yaml, line 2, column 1: not valid YAML"),
        ("a: 1\n\tb: 2\n", r"config.yaml, line 2, column 1: not valid YAML"),
        ("seed: 1\nseed: 2\n", r"config.yaml, line 2, column 1: not valid YAML: key 'seed' is given twice"),
        ("[1, 2]\n", r"config.yaml: expected `key: value` lines, got list"),
        ("", r"config.yaml: expected `key: value` lines, got nothing"),
        ("corpus: *nowhere\n", r"not valid YAML: found undefined alias"),
        ("seed: 1\n? [a]\n: 2\n", r"line 2, column 3: not valid YAML: a key must be a word, got a list or a"),
        ("seed: !!int x\n", r"config.yaml: not valid YAML: a value that cannot be read: invalid literal"),
        ("seed: 2024-13-45\n", r"config.yaml: not valid YAML: a value that cannot be read: month must be"),
        ("[" * 2000, r"config.yaml: not a config: its lists or mappings are nested too deeply"),
        ('output_dir: "a\\0"\n', r"line 1, column 13: .* has a character that no text can hold"),
        ("a: &a [1, 1, 1, 1, 1, 1, 1, 1]\noutput_dir: [*a, *a]\n", r"got \[\[1, 1, 1, 1, 1, 1, \.\.\.\]"),
        ("1: a\n1: b\n", r"line 2, column 1: not valid YAML: key '1' is given twice"),
    ],
)
def test_what_is_no_config_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_config(PretrainConfig, write(tmp_path, text))


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such config file"):
        load_config(PretrainConfig, tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"output_dir: caf\xe9\n")
    with pytest.raises(UserError, match="not UTF-8 at byte 15"):
        load_config(PretrainConfig, tmp_path / "latin.yaml")
    with pytest.raises(UserError, match="cannot be read"):
        load_config(PretrainConfig, tmp_path / ("long" * 99))


def test_overrides_reach_any_key(tmp_path: Path) -> None:
    overrides = ["training.steps=200", "corpus.files=[a, b]", "seed=5", "training.learning_rate=2e-4"]
    config = load_config(PretrainConfig, write(tmp_path, MINIMAL), overrides)
    assert (config.training.steps, config.corpus.files, config.seed) == (200, ["a", "b"], 5)
    assert config.training.learning_rate == 2e-4


def test_one_path_is_a_list_of_one(tmp_path: Path) -> None:
    text = "output_dir: run\ncorpus: {files: one.txt, general: other.txt}\nmodel: {init_from: bert}\n"
    corpus = load_config(PretrainConfig, write(tmp_path, text)).corpus
    assert (corpus.files, corpus.general) == (["one.txt"], ["other.txt"])
    with pytest.raises(UserError, match=r"corpus\.files: input should be a valid list, got 5"):
        load_config(PretrainConfig, write(tmp_path, MINIMAL), ["corpus.files=5"])


@pytest.mark.parametrize("override", ["training.steps", "=3"])
def test_a_malformed_override_is_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(UserError, match=r"--set"):
        load_config(PretrainConfig, write(tmp_path, MINIMAL), [override])


def test_a_saved_config_loads_as_itself(tmp_path: Path) -> None:
    config = load_config(PretrainConfig, write(tmp_path, MINIMAL + "training: {learning_rate: 1e-4}\n"))
    save_config(config, tmp_path / "saved.yaml")
    assert load_config(PretrainConfig, tmp_path / "saved.yaml") == config


def test_keys_are_text_as_written() -> None:
    """Labels are keys: YAML would read these as numbers and truth values."""
    value = parse_yaml("{0: 1, 1e-4: 2, no: 0, Yes: 1.5, '2': no}", "test")
    assert value == {"0": 1, "1e-4": 2, "no": 0, "Yes": 1.5, "2": False}


def test_differences_name_what_stands_in_one_config_alone() -> None:
    task = {"type": "classification", "train": "t", "text": "a", "label": "b"}
    base = {"output_dir": "run", "model": "m"}
    old, new = (
        check_config(FinetuneConfig, base | {"task": task | {"class_weights": weights}}, "test")
        for weights in (None, {"x": 1.0, "y": 2.0})
    )
    assert differences(old, new) == {
        "task.class_weights.x": (None, 1.0),
        "task.class_weights.y": (None, 2.0),
    }
    assert differences(new, old)["task.class_weights.y"] == (2.0, None)


def test_differences_are_named_by_their_dotted_keys() -> None:
    value = {"output_dir": "run", "corpus": {"files": ["classics"]}}
    old = check_config(PretrainConfig, value, "a")
    new = check_config(PretrainConfig, value | {"seed": 1, "training": {"steps": 3}}, "b")
    assert differences(old, new) == {"seed": (42, 1), "training.steps": (None, 3)}
