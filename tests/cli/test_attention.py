"""`bertcli attention`: a table, numbers or a page, of every kind of model; and which words decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.folders.folders import LABELS, random_model, save_model_folder, tiny_tokenizer
from tests.folders.test_rtd_folder import written
from tests.inference.test_decision import TEXTS

ROW = ["the cats sat on the mat", "a dog"]


def answer(out: str) -> dict[str, Any]:
    (line,) = out.splitlines()
    return json.loads(line)


def test_a_table_of_the_strongest_links(run_bertcli, model):
    code, out, err = run_bertcli("attention", model, "the cats sat on the mat", "--top-k", 4)
    first, second, *links = out.splitlines()
    assert (code, err, len(links)) == (0, "", 4)
    assert first.endswith(
        "(of all heads, the one whose words most strongly attend to a word of their own, not beside them)"
    )
    assert second.startswith("special tokens get ")
    assert all(" attends to " in link and "%" in link for link in links)


@pytest.mark.parametrize(
    ("option", "said"),
    [("--layer", "(of the heads of layer 1, the one "), ("--head", "(of head 1 in all layers, ")],
)
def test_a_head_that_is_chosen_among_some_says_among_which(run_bertcli, model, option: str, said: str):
    _, out, _ = run_bertcli("attention", model, *ROW, option, 1)
    assert said in out.splitlines()[0]


def test_the_table_of_a_head_that_is_asked_for_has_its_weights(run_bertcli, model):
    _, out, _ = run_bertcli("attention", model, *ROW, "--layer", 1, "--head", 2, "--top-k", 1)
    _, numbers, _ = run_bertcli("attention", model, *ROW, "--json")
    found = answer(numbers)
    words, head = found["words"], found["attention"][1][2]
    weights = {
        (query["text"], key["text"]): sum(head[i][j] for i in query["tokens"] for j in key["tokens"])
        / len(query["tokens"])
        for query in words
        for key in words
    }
    lines = out.splitlines()
    assert lines[0] == "layer 1, head 2 (the head that was asked for)"
    weight, query, _, _, key = lines[2].split()
    assert weight == f"{max(weights.values()):.1%}"
    assert f"{weights[query, key]:.1%}" == weight


def test_numbers_of_all_layers_and_heads(run_bertcli, model):
    code, out, _ = run_bertcli("attention", model, *ROW, "--json")
    found = answer(out)
    assert code == 0
    assert list(found) == ["texts", "tokens", "words", "layers", "attention"]
    assert found["texts"] == ROW
    assert found["tokens"][:4] == ["[CLS]", "the", "cat", "##s"]
    assert [word["text"] for word in found["words"]] == " ".join(ROW).split()
    assert [word["segment"] for word in found["words"]] == [0] * 6 + [1] * 2
    assert [len(found["attention"]), len(found["attention"][0])] == [2, 5]
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in found["attention"][0][0])
    _, out, _ = run_bertcli("attention", model, *ROW, "--json", "--layers", "1")
    assert answer(out)["attention"] == found["attention"][1:]


def test_a_page_is_written(run_bertcli, model, tmp_path):
    page = tmp_path / "a.html"
    code, out, err = run_bertcli("attention", model, *ROW, "--output", page, "--layers", "0,1", "--layer", 1)
    assert (code, out, err) == (0, "", f"{page}: open it in a browser\n")
    document = page.read_text()
    assert document.startswith("<!doctype html>")
    assert '"layers": [0, 1]' in document
    assert '"first": [1, ' in document


def test_a_page_of_a_long_text_has_the_layers_that_fit(run_bertcli, tmp_path):
    deep = random_model(layers=8, hidden=24, heads=12, max_positions=300)
    save_model_folder(tmp_path / "deep", deep, tiny_tokenizer())
    page = tmp_path / "a.html"
    code, _, err = run_bertcli("attention", tmp_path / "deep", "the cat " * 50, "--output", page)
    assert code == 0
    assert "not all layers fit in a page of 1 MB; it has " in err
    assert page.stat().st_size < 1_000_000
    code, _, err = run_bertcli(
        "attention", tmp_path / "deep", "the cat " * 50, "--output", page, "--layers", "0,1,2,3,4,5,6"
    )
    assert (code, "name fewer" in err) == (2, True)


@pytest.mark.parametrize("kind", list(TEXTS))
def test_which_words_decided_in_every_task(run_bertcli, models, tmp_path, kind):
    given = ["attention", models / kind, *TEXTS[kind], "--attributions"]
    code, out, _ = run_bertcli(*given, "--json")
    found = answer(out)["attributions"]
    assert code == 0
    assert found["is_complete"]
    assert sum(found["scores"]) == pytest.approx(
        found["value"] - found["baseline"], abs=0.01 * sum(map(abs, found["scores"])) + 1e-4
    )
    assert found["words"] == [word["text"] for word in answer(out)["words"]]
    code, out, _ = run_bertcli(*given)
    assert f"\n\n{found['answer']}: what each word adds to the model's output for it" in out
    lines = out.split("\n\n")[1].splitlines()
    assert len(lines) == len(found["words"]) + 2
    largest = max(map(abs, found["scores"]))
    for line, score in zip(lines[1:], found["scores"], strict=False):
        assert line.startswith(f"{score:+8.3f}")
        if abs(score) == largest:
            assert line.endswith(("+" if score > 0 else "-") * 20)
    code, _, _ = run_bertcli(*given, "--output", tmp_path / "a.html")
    assert code == 0
    assert "Which words decided" in (tmp_path / "a.html").read_text()


def test_another_answer_is_explained(run_bertcli, models):
    given = ["attention", models / "classification", *TEXTS["classification"], "--attributions", "--json"]
    for number, label in enumerate(LABELS["classification"]):
        for name in (label, number):
            _, out, _ = run_bertcli(*given, "--target", name)
            assert answer(out)["attributions"]["answer"] == label


def test_a_model_of_vectors_has_attention_and_nothing_to_explain(run_bertcli, models):
    for texts in (ROW, ROW[:1]):
        code, out, err = run_bertcli("attention", models / "vectors", *texts, "--json")
        assert (code, err, answer(out)["texts"]) == (0, "", texts)
    code, out, err = run_bertcli("attention", models / "vectors", *ROW, "--attributions")
    assert (code, out) == (2, "")
    assert "its answers are vectors: give it to bertcli embed" in err


def test_what_the_row_does_not_hold_is_said(run_bertcli, model, models):
    code, out, err = run_bertcli("attention", model, "the cat " * 20, "--json")
    assert (code, len(answer(out)["tokens"])) == (0, 19)
    assert err == "23 tokens of the text are not in this row, which holds 19\n"
    _, out, err = run_bertcli("attention", models / "multi-label", "the cat " * 100, "--json")
    assert err == "74 tokens of the text are not in this row, which holds 128\n"


def test_text_may_come_through_a_pipe(run_bertcli, model, monkeypatch, tmp_path):
    (tmp_path / "text").write_bytes(b"the cat sat\n")
    with open(tmp_path / "text", encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        code, out, _ = run_bertcli("attention", model, "-", "--json")
    assert (code, answer(out)["texts"]) == (0, ["the cat sat"])


def test_text_may_come_from_a_file_of_one_row(run_bertcli, models, tmp_path):
    table = tmp_path / "row.tsv"
    table.write_text("premise\thypothesis\nthe cat\ta dog\n")
    given = ["attention", models / "classification", "--input", table, "--json"]
    code, out, _ = run_bertcli(*given)
    assert (code, answer(out)["texts"]) == (0, ["the cat", "a dog"])
    table.write_text("premise\thypothesis\n" + 2 * "the cat\ta dog\n")
    code, _, err = run_bertcli(*given)
    assert (code, "one row is shown at a time" in err) == (2, True)


def test_both_models_of_replaced_words_are_shown(run_bertcli, tmp_path):
    discriminator = written(tmp_path, "electra", "electra")
    found = []
    for folder in (discriminator, discriminator / "generator"):
        code, out, _ = run_bertcli("attention", folder, "the garden", "--json")
        assert code == 0
        found.append(answer(out))
    assert found[0]["tokens"] == found[1]["tokens"]
    assert found[0]["attention"] != found[1]["attention"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["the cat", "--layer", 2], "--layer: there is no 2; the layers are 0 to 1"),
        (["the cat", "--head", 5], "--head: there is no 5; the heads are 0 to 4"),
        (["the cat", "--layers", "0,7"], "--layers: there is no 7; the layers are 0 to 1"),
        (["the cat", "--layers", "0,x"], "--layers 0,x: give numbers from 0 with commas between them"),
        (["the cat", "--layers", "1,1"], "--layers 1,1: give numbers from 0 with commas between them"),
        (["the cat", "--layers", "0", "--layer", 1], "--layer: there is no 1; the layers are 0 to 0"),
        (["the cat", "--attributions"], "is a masked language model, not a fine-tuned model"),
        (["the cat", "--target", "x"], "--target is the answer that --attributions explains; give both"),
        (["the cat", "--pair"], "--pair: this model has no task"),
        (["the cat", "--output", "a.txt"], "a.txt: the suffix selects the format; give one of .html"),
        (["the cat", "--output", "no/a.html"], "no/a.html: there is no folder no"),
        (["the cat", "--output", "a.html", "--json"], "--json writes to standard output"),
        ([" "], "the command line holds no text"),
        (["a", "dog", "ran"], "one row is shown at a time, and there are more\n"),
    ],
)
def test_wrong_input_is_an_error(run_bertcli, model, arguments, message):
    code, out, err = run_bertcli("attention", model, *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (
            "multi-label",
            ["a cat", "a dog"],
            "there are more; for a pair, with a model that was fine-tuned on one text, add --pair",
        ),
        ("tokens", ["a cat", "a dog"], "one row is shown at a time, and there are more\n"),
        ("classification", ["a cat"], "the model reads a pair of texts, each in quotation marks; found 1"),
        ("questions", ["a cat"], "the model reads a question and its context"),
        ("tokens", ["a cat", "--pair"], "a token-classification model reads no pairs"),
        ("multi-label", ["a cat", "--attributions", "--target", "pink"], "--target pink: give one of these"),
        ("regression", ["a", "b", "--attributions", "--target", "1"], "has one answer alone; leave it out"),
    ],
)
def test_input_that_a_task_does_not_read_is_an_error(run_bertcli, models, kind, arguments, message):
    code, out, err = run_bertcli("attention", models / kind, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_pair_is_read_by_a_model_whose_folder_does_not_say_so(run_bertcli, models):
    code, out, _ = run_bertcli("attention", models / "multi-label", "a cat", "a dog", "--pair", "--json")
    assert (code, answer(out)["texts"]) == (0, ["a cat", "a dog"])


def test_an_old_page_stays_where_the_new_one_is_refused(run_bertcli, models, tmp_path: Path):
    page = tmp_path / "a.html"
    page.write_text("mine")
    code, _, _ = run_bertcli("attention", models / "multi-label", "a cat", "--layer", 9, "--output", page)
    assert (code, page.read_text()) == (2, "mine")
    assert list(tmp_path.iterdir()) == [page]
