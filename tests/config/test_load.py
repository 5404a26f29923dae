from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import (
    check_config,
    load_config,
    load_either_config,
    parse_yaml,
    save_config,
)
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import differences
from bertcli.config.yaml_text import yaml_text
from bertcli.system.errors import UserError
from tests.config.files import MINIMAL, write
from tests.small_runs import small_config, write_config

TASK = "{type: classification, train: a.tsv, text: text, label: label}"


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
        "training.batch_size: expected a number or auto, got the text 'many'; write it in decimal digits",
        "training.micro_batch_size: expected a number or auto, got the text 'few'",
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
        ("a: 1\n\tb: 2\n", r"config.yaml, line 2, column 1: not valid YAML.* with blanks: replace each tab"),
        ("seed: 1\nseed: 2\n", r"config.yaml, line 2, column 1: not valid YAML: key 'seed' is given twice"),
        ("[1, 2]\n", r"config.yaml: is no config: .* got a list.*bertcli init FILE writes a config"),
        ("", r"config.yaml: is no config: expected lines `key: value`, got nothing"),
        ("text,label\na,b\n", r"config.yaml: is no config: expected lines `key: value`, got other text"),
        ("corpus: texts/\n", r"corpus: expected a section, indented lines `key: value` \(files, .*'texts/'"),
        ("corpus:\n- files: a\n", r"corpus: expected a section, .*, got \[\{'files': "),
        ("corpus: *nowhere\n", r"not valid YAML: found undefined alias"),
        ("seed: 1\n? [a]\n: 2\n", r"line 2, column 3: not valid YAML: a key must be a word, got a list or a"),
        (
            "seed: !!int x\n",
            r"line 1, column 7: not valid YAML: could not determine a con",
        ),
        (
            "seed: 2024-13-45\n",
            r"seed: expected a number, got the text '2024-13-45'; write it in decimal digits",
        ),
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


PATHS: dict[type[BaseModel], tuple[str, ...]] = {
    PretrainConfig: (
        *("output_dir", "corpus.files", "corpus.general", "corpus.store", "tokenizer.path"),
        *("model.init_from", "distillation.teacher"),
    ),
    FinetuneConfig: ("output_dir", "model", "task.train", "task.dev", "distillation.teacher"),
}


@pytest.mark.parametrize(("schema", "key"), [(schema, key) for schema, keys in PATHS.items() for key in keys])
def test_every_path_of_a_config_is_expanded_and_never_empty(
    schema: type[BaseModel], key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    text = MINIMAL if schema is PretrainConfig else f"{{output_dir: run, model: bert, task: {TASK}}}\n"
    path = write(tmp_path, text)

    def loaded(value: str) -> Any:
        needed = ["model.init_from=bert"] if key == "corpus.general" else []
        found: Any = load_config(schema, path, [f"{key}={value}", *needed])
        for part in key.split("."):
            found = getattr(found, part)
        return found[0] if isinstance(found, list) else found

    assert loaded("~/run") == "/home/me/run"
    assert loaded("./~run") == "./~run"
    for value, why in (
        ("''", "is empty"),
        ("'  '", "is empty"),
        ("~nobody-here/run", "no user has"),
    ):
        with pytest.raises(UserError, match=rf"{re.escape(key)}(\.0)?: .*{why}"):
            loaded(value)


@pytest.mark.parametrize("override", ["training.steps", "=3"])
def test_a_malformed_override_is_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(UserError, match=r"--set"):
        load_config(PretrainConfig, write(tmp_path, MINIMAL), [override])


def test_a_saved_config_loads_as_itself(tmp_path: Path) -> None:
    config = load_config(PretrainConfig, write(tmp_path, MINIMAL + "training: {learning_rate: 1e-4}\n"))
    save_config(config, tmp_path / "saved.yaml")
    assert load_config(PretrainConfig, tmp_path / "saved.yaml") == config


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(
            ("7", 7),
            ("+7", 7),
            ("-7", -7),
            ("0", 0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("-1E-4", -1e-4),
        ),
        *(("true", True), ("False", False), ("NULL", None), ("~", None), ("", None)),
        *((text, text) for text in ("0123", "08", "-01", "1:30", "1:30.5", "1_000", "1_0.5", "0x10", "0o17")),
        *((text, text) for text in ("0b11", "1,000", "1e", "yes", "no", "on", "Off", "y", "2024-01-01", "=")),
        *((text, text) for text in (".inf", "-.INF", ".nan", "inf", "nan", "1e3x", "0.1.2", "12:00:00")),
        ("9" * 5_000, "9" * 5_000),
        ("'7'", "7"),
        ('"true"', "true"),
    ],
)
def test_a_word_is_what_it_looks_like(word: str, value: Any) -> None:
    read = parse_yaml(f"x: {word}", "test")["x"]
    assert (read, type(read)) == (value, type(value))
    assert parse_yaml(yaml_text({"x": value}), "test") == {"x": value}


def test_a_few_lines_of_aliases_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    with pytest.raises(UserError, match="problems in the config"):
        load_config(PretrainConfig, write(tmp_path, "\n".join([*lines, "corpus: {files: *a29}"])))


def test_of_many_problems_some_are_listed(tmp_path: Path) -> None:
    lines = "".join(f"k{i}: 1\n" for i in range(200))
    with pytest.raises(UserError, match="more than 50 problems") as caught:
        load_config(PretrainConfig, write(tmp_path, MINIMAL + lines))
    assert str(caught.value).endswith("...")


def test_keys_are_text_as_written() -> None:
    """Labels are keys: YAML would read these as numbers and truth values."""
    value = parse_yaml("{0: 1, 1e-4: 2, no: 0, Yes: 1.5, '2': no}", "test")
    assert value == {"0": 1, "1e-4": 2, "no": 0, "Yes": 1.5, "2": "no"}


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


def test_the_sections_say_which_kind_it_is(tmp_path: Path) -> None:
    pretraining = small_config(tmp_path / "a.txt", tmp_path)
    finetuning = {"output_dir": "runs/a", "model": "bert", "task": parse_yaml(TASK, "the test")}
    path = write_config(tmp_path / "config.yaml", pretraining)
    assert isinstance(load_either_config(path, ["seed=3"]), PretrainConfig)
    path = write_config(tmp_path / "config.yaml", finetuning)
    assert isinstance(load_either_config(path), FinetuneConfig)
    for config, what in ((pretraining | finetuning, "both"), ({"output_dir": "runs/a"}, "neither")):
        path = write_config(tmp_path / "config.yaml", config)
        with pytest.raises(UserError, match=f"a section task; this one has {what}"):
            load_either_config(path)
