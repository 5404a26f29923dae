import json
import subprocess
import sys

import pytest
import torch

from tests.folders.folders import random_model, saved_task, tiny_tokenizer
from tests.small_runs import run_warm


def test_json_of_several_texts(run_bertcli, model):
    code, out, _ = run_bertcli(
        "predict-mask", model, "The [MASK] sat.", "[MASK] [MASK]", "--top-k", 2, "--json"
    )
    assert code == 0
    first, second = map(json.loads, out.splitlines())
    assert first["text"] == "The [MASK] sat."
    assert [len(mask["predictions"]) for mask in second["masks"]] == [2, 2]
    assert set(first["masks"][0]["predictions"][0]) == {"token", "id", "probability"}
    assert first["filled"].endswith(" sat.")


def test_readable_output(run_bertcli, model):
    _, out, _ = run_bertcli("predict-mask", model / "model", "The [MASK] sat [MASK].", "--top-k", 2)
    lines = out.splitlines()
    assert len(lines) == 5
    assert lines[1].startswith("  [MASK] 1  ")
    assert lines[3].startswith("  [MASK] 2  ")
    assert lines[1].index("%") == lines[2].index("%") == lines[4].index("%")


def test_a_file_of_texts(run_bertcli, model, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("The [MASK] sat.\n\nA [MASK]\n")
    _, out, _ = run_bertcli("predict-mask", model, "--input", path, "--json", "--batch-size", 1)
    filled = [json.loads(line) for line in out.splitlines()]
    assert [each["text"] for each in filled] == ["The [MASK] sat.", "", "A [MASK]"]
    assert filled[1] == {"text": "", "filled": "", "masks": []}


def test_a_pipe(model):
    done = run_warm("predict-mask", model, "--json", input="The [MASK].\n")
    assert json.loads(done.stdout)["text"] == "The [MASK]."


def test_a_blank_text_has_an_empty_result_and_the_others_theirs(run_bertcli, model):
    code, out, _ = run_bertcli("predict-mask", model, "The [MASK].", "  ", "A [MASK].", "--json")
    assert code == 0
    assert [len(json.loads(line)["masks"]) for line in out.splitlines()] == [1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["the cat"], "error: text 1: no [MASK] in 'the cat'"),
        (["the " * 18 + "[MASK]"], "error: text 1: 21 tokens with the special ones"),
        (["", " "], "error: the command line holds no text"),
        (["[MASK]", "--top-k", "0"], "error: --top-k 0: give a number from 1 to 32"),
        (["[MASK]", "--device", "abacus"], "error: device: 'abacus' is unknown"),
        (["--input", "nowhere.txt"], "error: nowhere.txt: cannot be read: No such file"),
    ],
)
def test_bad_input_exits_2_with_its_message_alone(run_bertcli, model, arguments, message):
    code, out, err = run_bertcli("predict-mask", model, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert "Traceback" not in err


def test_a_model_that_is_none(run_bertcli, tmp_path):
    code, _, err = run_bertcli("predict-mask", tmp_path / "nowhere", "[MASK]")
    assert code == 2
    assert "nowhere: no such folder" in err
    code, _, err = run_bertcli("predict-mask", tmp_path, "[MASK]")
    assert code == 2
    assert "missing: config.json (the sizes); weights (one of" in err


def test_a_model_without_a_masked_language_model_head_is_refused(run_bertcli, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = random_model()
    config = transformers.BertConfig(
        vocab_size=37, hidden_size=15, num_hidden_layers=2, num_attention_heads=5, intermediate_size=23
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(tmp_path)
    tiny_tokenizer().save(tmp_path, model.architecture.max_positions)
    code, _, err = run_bertcli("predict-mask", tmp_path, "[MASK]")
    assert code == 2
    assert "error: the model has no masked-language-model head: give one" in err


def test_a_fine_tuned_model_is_sent_to_the_verb_for_it(run_bertcli, tmp_path):
    saved_task(tmp_path, "tokens")
    code, _, err = run_bertcli("predict-mask", tmp_path, "[MASK]")
    assert code == 2
    assert err == "error: the model is fine-tuned for token-classification: give it to bertcli predict\n"
    code, _, err = run_bertcli("predict-next", tmp_path, "a", "b")
    assert code == 2
    assert "is fine-tuned for token-classification: give it to bertcli predict" in err


CHECK_HELP = """
import sys
from bertcli.cli.main import app
try:
    app()
except SystemExit:
    assert "torch" not in sys.modules
"""


@pytest.mark.parametrize(
    "verb", ["predict-mask", "predict-next", "predict", "embed", "attention", "evaluate"]
)
def test_help_does_not_import_torch(verb):
    command = [sys.executable, "-c", CHECK_HELP, verb, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"Example: bertcli {verb}" in " ".join(done.stdout.split())
