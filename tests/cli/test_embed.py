"""`bertcli embed`: vectors on standard output and in files, and the folder's own settings."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from bertcli.config.task import TaskSettings
from bertcli.folders.task_folder import declare_task
from tests.folders.folders import change_config, saved_model, saved_task, saved_vectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    saved_model(folder)
    return folder


@pytest.fixture
def sentence_folder(tmp_path: Path) -> Path:
    """As sentence-transformers writes them: maximum, normalized, at most 5 tokens."""
    folder = tmp_path / "sentences"
    saved_model(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 5}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    return folder


def vectors(out: str) -> list[list[float]]:
    return [json.loads(line)["vector"] for line in out.splitlines()]


def test_texts_give_json_lines(run_bertcli, folder):
    code, out, err = run_bertcli("embed", folder, "the cat", "a dog")
    assert (code, err) == (0, "")
    first, second = map(json.loads, out.splitlines())
    assert (list(first), first["text"], second["text"]) == (["text", "vector"], "the cat", "a dog")
    assert len(first["vector"]) == 15
    _, same, _ = run_bertcli("embed", folder, "the cat", "a dog", "--json")
    assert same == out


def test_files_in_and_out(run_bertcli, folder, tmp_path):
    texts = [f"the cat {'sat ' * (number % 7)}" for number in range(50)]
    (tmp_path / "rows.tsv").write_text("id\tbody\n" + "".join(f"7\t{text}\n" for text in texts))
    (tmp_path / "rows.txt").write_text("\n".join(texts) + "\n")
    npy, jsonl = tmp_path / "v.npy", tmp_path / "v.jsonl"
    table = ["--input", tmp_path / "rows.tsv", "--text", "body"]
    code, out, _ = run_bertcli("embed", folder, *table, "--output", npy, "--batch-size", 3)
    assert (code, out) == (0, "")
    run_bertcli("embed", folder, "--input", tmp_path / "rows.txt", "--output", jsonl)
    array = np.load(npy)
    assert (array.dtype, array.shape) == (np.float32, (50, 15))
    np.testing.assert_allclose(array, vectors(jsonl.read_text()), atol=1e-5)
    numbered = ["--input", tmp_path / "rows.tsv", "--text", "1"]
    _, out, _ = run_bertcli("embed", folder, *numbered)
    np.testing.assert_allclose(array, vectors(out), atol=1e-5)


def test_a_task_model_has_vectors_too(run_bertcli, tmp_path):
    saved_task(tmp_path, "tokens")
    code, out, _ = run_bertcli("embed", tmp_path, "the cat")
    assert (code, len(vectors(out)[0])) == (0, 15)


def test_the_folders_own_settings_are_obeyed_unless_others_are_given(run_bertcli, folder, sentence_folder):
    text = "the cat sat on the mat"

    def vector(*arguments: object) -> list[float]:
        code, out, err = run_bertcli("embed", *arguments)
        assert code == 0, err
        return vectors(out)[0]

    own = vector(sentence_folder, text)
    assert math.hypot(*own) == pytest.approx(1)
    plain = ["--pooling", "max", "--max-length", 5]
    assert own == pytest.approx(vector(folder, "the cat sat", *plain, "--normalize"), abs=1e-6)
    assert vector(sentence_folder, text, "--no-normalize") == pytest.approx(vector(folder, text, *plain))
    longer = vector(sentence_folder, text, "--no-normalize", "--max-length", 19, "--pooling", "cls")
    assert longer == pytest.approx(vector(folder, text, "--pooling", "cls"))
    assert vector(folder, text) == pytest.approx(vector(folder, text, "--pooling", "mean"))
    assert vector(folder, text) != pytest.approx(longer)


def test_texts_that_were_cut_are_counted(run_bertcli, folder):
    _, _, err = run_bertcli("embed", folder, "the cat " * 10, "a dog")
    assert err == "1 of 2 rows were longer than the model reads, and were cut\n"


def test_long_texts_are_read_in_windows_as_asked_or_as_the_model_was_trained(run_bertcli, tmp_path):
    saved_vectors(tmp_path)
    text, found = "the cat sat on the mat in the dark " * 3, []
    asked = run_bertcli("embed", tmp_path, text, "--windows", "max")
    settings = TaskSettings(type="sentence-embedding", max_length=16, windows="max")
    change_config(tmp_path, **declare_task(settings, ()).keys)
    for code, out, err in (asked, run_bertcli("embed", tmp_path, text)):
        assert (code, err) == (0, "")
        found += vectors(out)
    assert found[0] == found[1]
    code, out, err = run_bertcli("embed", tmp_path, text, "--windows", "first")
    assert err == "1 of 1 rows were longer than the model reads, and were cut\n"
    assert vectors(out) != [found[0]]


def test_a_blank_text_has_a_vector_and_is_named(run_bertcli, folder):
    code, out, err = run_bertcli("embed", folder, "the cat", "  ", "a dog")
    assert (code, err) == (0, "the command line: 1 of 3 texts are empty; the first is text 2\n")
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["the cat", "  ", "a dog"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "--output", "v.txt"], "v.txt: the suffix selects the format; give one of .npy"),
        (["a", "--output", "none/v.npy"], "none/v.npy: there is no folder none"),
        (["a", "--output", "v.npy", "--json"], "--json writes to standard output"),
        (["a", "--max-length", "20"], "--max-length: 20 tokens, but"),
        (["--input", "FOLDER/rows.tsv"], "no column 'text'; the columns: body"),
        (["--input", "FOLDER/empty.txt"], "empty.txt: holds no rows"),
        (["", " "], "the command line holds no text"),
    ],
)  # fmt: skip
def test_bad_input_exits_2_with_its_message_alone(run_bertcli, folder, tmp_path, arguments, message):
    (tmp_path / "rows.tsv").write_text("body\nthe cat\n")
    (tmp_path / "empty.txt").write_text("")
    given = [argument.replace("FOLDER", str(tmp_path)) for argument in arguments]
    code, out, err = run_bertcli("embed", folder, *given)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
