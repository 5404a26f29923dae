"""`bertcli similarity`: the nearest texts, as all cosines say, and every message."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from bertcli.inference.vectors import VectorFile
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample
from tests.folders.folders import saved_model

TEXTS = ["The cat sat.", "A dog", "", "the night was dark", "He sat on a cat", "dark", "a cat sat", "it was"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    saved_model(folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def test_the_nearest_texts_are_those_of_all_cosines(run_bertcli, folder: Path, file: Path) -> None:
    _, out, _ = run_bertcli("embed", folder, "--input", file)
    vectors = np.array([json.loads(line)["vector"] for line in out.splitlines()])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for query in (0, 3):
        cosines = vectors @ vectors[query]
        cosines[2] = -1  # an empty text is left out
        expected = np.argsort(-cosines, kind="stable")[:3]
        code, out, _ = run_bertcli(
            "similarity", folder, TEXTS[query], "--input", file, "--top", "3", "--json"
        )
        found = [json.loads(line) for line in out.splitlines()]
        assert code == 0
        assert [each["text"] for each in found] == [TEXTS[number] for number in expected]
        assert [each["rank"] for each in found] == [1, 2, 3]
        assert [each["similarity"] for each in found] == pytest.approx(cosines[expected].tolist(), abs=1e-5)


def test_saved_vectors_give_the_same_answer(run_bertcli, folder: Path, file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "texts.npy"
    run_bertcli("embed", folder, "--input", file, "--output", saved)
    given = ["similarity", folder, "the dog", "a night", "--input", file]
    code, computed, _ = run_bertcli(*given)
    assert code == 0
    assert run_bertcli(*given, "--vectors", saved)[1] == computed
    assert computed.splitlines()[0] == "the dog"


def test_queries_of_a_pipe(
    run_bertcli, folder: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = ["the dog", "a night", "a night", "it was"]
    for asked in (queries, queries[:1]):
        (tmp_path / "queries").write_text("\n".join(asked) + "\n")
        outputs = []
        for options in ([], ["--json"]):
            with open(tmp_path / "queries", encoding="utf-8") as pipe:
                monkeypatch.setattr("sys.stdin", pipe)
                code, out, err = run_bertcli("similarity", folder, "-", "--input", file, "--top", 2, *options)
            assert code == 0, err
            outputs.append(out)
            assert out == run_bertcli("similarity", folder, *asked, "--input", file, "--top", 2, *options)[1]
        found = [json.loads(line)["query"] for line in outputs[1].splitlines()]
        assert found == [query for query in asked for _ in range(2)]
    # a heading for each query, also for equal ones; none for a single one
    assert len(outputs[0].splitlines()) == 2


def test_equal_queries_have_a_heading_each(run_bertcli, folder: Path, file: Path) -> None:
    _, out, _ = run_bertcli("similarity", folder, "a dog", "a dog", "--input", file, "--top", 1)
    assert out.splitlines()[::2] == ["a dog", "a dog"]


def test_a_query_that_was_cut_is_told(run_bertcli, folder: Path, file: Path) -> None:
    _, _, err = run_bertcli("similarity", folder, "the cat " * 20, "--input", file)
    assert "1 of 9 rows were longer than the model reads, and were cut" in err


def test_texts_on_the_command_line(run_bertcli, folder: Path) -> None:
    code, out, _ = run_bertcli("similarity", folder, "a cat sat", "it was", "a cat sat")
    assert code == 0
    first, second = out.splitlines()
    assert first.split("  ") == ["", "1.0000", "a cat sat"]
    assert second.endswith("it was")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["alone"], "give the texts to compare with: --input FILE, or further texts"),
        (["-", "--input", "-"], "- is standard input, which can be read once"),
        (["-", "-"], "- is standard input, which can be read once"),
        (["q", "--input", "FILE", "--vectors", "nowhere.npy"], "nowhere.npy: cannot be read"),
        (["q", "--input", "FILE", "--vectors", "FILE"], "is no .npy file of numbers"),
        (["q", "--input", "FILE", "--vectors", "wide.npy"], r"holds float32 of the shape \[8, 7\]"),
        (["q", "--input", "FILE", "--vectors", "few.npy"], "holds 3 vectors, but the input has more texts"),
        (["q", "--input", "FILE", "--vectors", "many.npy"], "the input has only 8 texts"),
    ],
)
def test_each_message(
    run_bertcli, folder: Path, file: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    hidden = json.loads((folder / "config.json").read_text())["hidden_size"]
    for name, shape in {"wide": (8, 7), "few": (3, hidden), "many": (9, hidden)}.items():
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
    named = [
        str(file) if each == "FILE" else str(tmp_path / each) if each.endswith(".npy") else each
        for each in arguments
    ]
    code, out, err = run_bertcli("similarity", folder, *named)
    assert (code, out) == (2, "")
    assert re.search(message, err)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header(shape: tuple[int, ...], rest: bytes = b"") -> bytes:
    """The first lines of a file that says that it has this shape, and a `rest`."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue() + rest


GOOD = npy(np.ones((3, 4), np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, "is no .npy file of numbers") for content in (b"", GOOD[:20], GOOD[:-8], b"PK\x03\x04x")),
        *((header(shape), "is no .npy file") for shape in ((2**62, 4), (2**70, 4), (-1, 4))),
        (header((True, 4), bytes(40)), "is no .npy file of numbers"),
        (npy(np.full((3, 4), {}, object)), "is no .npy file of numbers"),
        (npy(np.ones((3, 4), int)), "holds int64 of the shape"),
        (npy(np.ones((3, 4), complex)), "holds complex128 of the shape"),
        (npy(np.full((3, 4), "a")), "holds <U1 of the shape"),
        (npy(np.ones(4)), r"holds float64 of the shape \[4\]"),
        (npy(np.ones((3, 4, 1))), r"holds float64 of the shape \[3, 4, 1\]"),
        *((npy(np.full((3, 4), value)), "vector 1 is NaN") for value in (np.nan, -np.inf, 1e38, 1e300)),
    ],
)
def test_damaged_vectors(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "v.npy").write_bytes(content)
    example = TextExample("", {}, ("a",), label=None)
    with pytest.raises(UserError, match=message):
        VectorFile(tmp_path / "v.npy", 4).take([example] * 3)


def test_vectors_that_are_cut_while_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(GOOD)
    file = VectorFile(tmp_path / "v.npy", 4)
    os.truncate(tmp_path / "v.npy", 10)
    with pytest.raises(UserError, match="was cut while it was in use"):
        file.take([TextExample("", {}, ("a",), label=None)])
