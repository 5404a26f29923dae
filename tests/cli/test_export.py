"""`bertcli export`, and its folders in `bertcli predict`, `bertcli embed` and transformers.js."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from bertcli.cli import main as cli
from bertcli.cli.folders import _table
from bertcli.config.task import TaskSettings
from bertcli.folders import onnx_folder as verify
from bertcli.folders.config_file import read_architecture
from bertcli.folders.onnx_folder import Comparison, Form
from bertcli.folders.onnx_graph import ExportedModel
from bertcli.inference.onnx_model import OnnxModel
from bertcli.tasks.files import read_examples
from tests.finetunes import run, spam_config, write_model, write_spam
from tests.folders.folders import change_config, saved_model

NODE_MODULES = os.environ.get("BERTCLI_NODE_MODULES", "node_modules")
"""A folder in which `npm install @huggingface/transformers` has put its packages."""


@dataclass(frozen=True)
class Pair:
    """A model, the folder that was exported from it, and what the command printed."""

    model: Path
    onnx: Path
    out: str


def exported(model: Path, onnx: Path, *options: object) -> Pair:
    """By the command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr("sys.argv", ["bertcli", "export", str(model), str(onnx), *map(str, options)])
        patch.setattr("sys.stderr", err)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code, err.getvalue()
    return Pair(model, onnx, out.getvalue())


@pytest.fixture(scope="module")
def spam(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A model that was fine-tuned until it finds spam."""
    folder = tmp_path_factory.mktemp("spam")
    write_model(folder / "bert", dropout=0.0)
    write_spam(folder / "train.tsv", rows=256)
    write_spam(folder / "dev.tsv", rows=32, skip=256)
    training = {"epochs": 6, "learning_rate": 3.0e-3}
    run(spam_config(folder, task={"max_length": 64}, training=training))
    options = ["--int8", "--sample", folder / "dev.tsv", "--json"]
    return exported(folder / "run", folder / "onnx", *options)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A folder of sentence-transformers: the mean, normalized, of at most 16 tokens."""
    folder = tmp_path_factory.mktemp("encoder")
    saved_model(folder / "model")
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "model" / "modules.json").write_text(json.dumps(modules))
    (folder / "model" / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16}))
    (folder / "model" / "1_Pooling").mkdir()
    pooling = {"pooling_mode_mean_tokens": True}
    (folder / "model" / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return exported(folder / "model", folder / "onnx", "--int8")


def answers(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_folder_has_the_layout_that_others_look_for(spam: Pair, encoder: Pair) -> None:
    for pair in (spam, encoder):
        files = {str(path.relative_to(pair.onnx)) for path in pair.onnx.rglob("*") if path.is_file()}
        needed = {"config.json", "tokenizer.json", "tokenizer_config.json"}
        assert files >= {*needed, "onnx/model.onnx", "onnx/model_quantized.onnx"}
        assert not [name for name in files if name.endswith((".safetensors", ".data"))]
    assert {"modules.json", "1_Pooling/config.json", "sentence_bert_config.json"} <= files
    ours, theirs = (
        json.loads((each / "config.json").read_text()) for each in (spam.model / "model", spam.onnx)
    )
    assert ours == theirs


def test_a_fine_tuned_model_predicts_the_same_as_onnx(run_bertcli, spam: Pair) -> None:
    file = spam.model.parent / "dev.tsv"
    code, ours, told = run_bertcli("predict", spam.model, "--input", file)
    assert code == 0
    assert {row["label"] for row in answers(ours)} == {"ham", "spam"}
    for model in (spam.onnx, spam.onnx / "onnx" / "model.onnx"):
        code, theirs, err = run_bertcli("predict", model, "--input", file)
        assert (code, err) == (0, told)
        for one, other in zip(answers(ours), answers(theirs), strict=True):
            assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=1e-5)
            assert one == other
    code, theirs, _ = run_bertcli("predict", spam.onnx / "onnx" / "model_quantized.onnx", "--input", file)
    equal = [a["label"] == b["label"] for a, b in zip(answers(ours), answers(theirs), strict=True)]
    (done,) = answers(spam.out)
    assert code == 0
    assert done["int8"]["agreement"] == {"equal": sum(equal) / len(equal), "answers": 32}


def test_long_texts_are_read_in_the_same_windows(run_bertcli, spam: Pair, tmp_path) -> None:
    given, found = ("--input", spam.model.parent / "dev.tsv"), []
    for model in (spam.model / "model", spam.onnx):
        folder = Path(shutil.copytree(model, tmp_path / model.name))
        own = json.loads((folder / "config.json").read_text())["bertcli_task"]
        for mode in ("first", "mean", "max"):
            windows = {"max_length": 16, "doc_stride": 4, "windows": mode}
            change_config(folder, bertcli_task=own | windows)
            code, out, err = run_bertcli("predict", folder, *given)
            assert (code, "were cut" in err) == (0, mode == "first")
            found.append([row["probabilities"]["spam"] for row in answers(out)])
    first, mean, highest = found[:3]
    assert found[3:] == [pytest.approx(each, abs=1e-5) for each in (first, mean, highest)]
    assert first != pytest.approx(mean, abs=1e-3)
    assert mean != pytest.approx(highest, abs=1e-3)


def test_what_is_printed_in_json(spam: Pair) -> None:
    (done,) = answers(spam.out)
    assert (done["folder"], done["outputs"]) == (str(spam.onnx), ["logits"])
    assert done["bytes"] == (spam.onnx / "onnx" / "model.onnx").stat().st_size
    assert 0 <= done["difference"] <= verify.TOLERANCE
    assert done["int8"]["rows"] == 32
    forms = done["int8"]["forms"]
    assert list(forms) == ["bertcli, fp32", "onnxruntime, fp32", "onnxruntime, int8"]
    assert forms["onnxruntime, int8"]["bytes"] < forms["onnxruntime, fp32"]["bytes"]
    assert all(set(form["rows_per_second"]) == {"1", "32"} for form in forms.values())


def test_people_are_told_that_answers_of_int8_depend_on_the_batch() -> None:
    forms = {"onnxruntime, int8": Form(1_000_000, {1: 100.0, 32: 200.0})}
    lines = "\n".join(
        _table(Comparison(False, rows=32, agreement={"equal": 1.0, "answers": 32}, forms=forms))
    )
    assert "in another batch, a row may have another answer" in lines
    assert "100.00% of its 32 answers are bertcli's" in lines


def test_the_vectors_of_an_encoder_are_equal(run_bertcli, encoder: Pair) -> None:
    texts = ["the cat sat on the mat", "a dog", "it was dark " * 9]
    vectors = []
    for model in (encoder.model, encoder.onnx):
        code, out, err = run_bertcli("embed", model, *texts)
        assert code == 0
        assert "1 of 3 rows were longer than the model reads" in err
        vectors.append(np.array([row["vector"] for row in answers(out)]))
    np.testing.assert_allclose(*vectors, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors[1], axis=1), 1, atol=1e-5)
    assert encoder.out.startswith(f"{encoder.onnx}: last_hidden_state; ")
    assert "cosine of its vectors with bertcli's: mean 0.9" in encoder.out


@pytest.mark.parametrize("kind", ["encoder", "spam"])
def test_rows_of_other_lengths_are_computed_as_they_are_alone(
    spam: Pair, encoder: Pair, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = {"encoder": encoder, "spam": spam}[kind].onnx
    model = OnnxModel(folder / "onnx" / "model.onnx", read_architecture(folder / "config.json"))
    calls = Mock(side_effect=model.run)
    monkeypatch.setattr(model, "run", calls)
    lengths = [6, 16, 5, 7, 15, 3]
    ids_BT = torch.randint(5, 30, (len(lengths), 16))
    mask_BT = torch.arange(16) < torch.tensor(lengths)[:, None]
    together = model(ids_BT * mask_BT, torch.zeros_like(ids_BT), mask_BT)
    assert [list(call.args[0].shape) for call in calls.call_args_list] == [[3, 16], [3, 6]]
    for row, length in enumerate(lengths):
        one = ids_BT[row : row + 1, :length]
        alone = model(one, torch.zeros_like(one))[0]
        found = together[row] if alone.ndim == 1 else together[row, :length]
        torch.testing.assert_close(found, alone)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "SPAM", "--data", "DEV"], "holds onnx/model.onnx, an ONNX file, which only"),
        (["convert", "SPAM/onnx/model.onnx", "OUT"], "is an ONNX file, which only bertcli predict"),
        (["embed", "SPAM", "a text"], "its outputs are logits, and this needs last_hidden_state; export the"),
        (["predict", "ENCODER", "a text"], "its answers are vectors: give it to bertcli embed"),
        (["predict", "SPAM", "a", "--device", "cuda"], "model.onnx is run on the CPU; leave it out"),
        (["predict", "SPAM", "a", "--precision", "bf16"], "has a precision of its own; leave it out"),
        (["predict", "ALONE/model.onnx", "a"], "config.json and a vocabulary (tokenizer.json or vocab.txt"),
        (["predict", "DAMAGED", "a"], "model.onnx: onnxruntime cannot open it: "),
    ],
)  # fmt: skip
def test_what_an_onnx_folder_is_not_for(run_bertcli, spam: Pair, encoder: Pair, tmp_path, arguments, message):
    (tmp_path / "alone").mkdir()
    shutil.copyfile(spam.onnx / "onnx" / "model.onnx", tmp_path / "alone" / "model.onnx")
    shutil.copytree(spam.onnx, tmp_path / "damaged")
    (tmp_path / "damaged" / "onnx" / "model.onnx").write_bytes(b"damaged")
    places = {
        "SPAM": spam.onnx,
        "ENCODER": encoder.onnx,
        "DEV": spam.model.parent / "dev.tsv",
        "ALONE": tmp_path / "alone",
        "DAMAGED": tmp_path / "damaged",
        "OUT": tmp_path / "out",
    }
    for name, place in places.items():
        arguments = [argument.replace(name, str(place)) for argument in arguments]
    code, out, err = run_bertcli(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err


def test_without_onnxruntime_the_extra_is_named(run_bertcli, spam: Pair, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = run_bertcli("predict", spam.onnx, "a text")
    assert code == 2
    assert err.endswith(
        "is an ONNX file, and onnxruntime is not installed; running it needs: pip install 'bertcli[onnx]'\n"
    )


@pytest.mark.parametrize("fault", ["another value", "not a number", "another shape"])
def test_another_output_is_never_published(run_bertcli, spam: Pair, tmp_path, monkeypatch, fault) -> None:
    def copy(model: ExportedModel, path: Path) -> None:
        shutil.copyfile(spam.onnx / "onnx" / "model.onnx", path)

    original = ExportedModel.forward

    def wrong(self: ExportedModel, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        (logits,) = original(self, *given)
        return (
            {
                "another value": logits + 0.001,
                "not a number": logits * np.nan,
                "another shape": logits[:, :1],
            }[fault],
        )

    monkeypatch.setattr("bertcli.folders.onnx_folder.write_onnx", copy)
    monkeypatch.setattr(ExportedModel, "forward", wrong)
    code, out, err = run_bertcli("export", spam.model, tmp_path / "out")
    assert (code, out) == (2, "")
    assert "error: logits of the exported model " in err
    assert "nothing was written" in err
    assert list(tmp_path.iterdir()) == []


def in_node(folder: Path, task: str, dtype: str, *texts: str) -> Any:
    script = Path(__file__).parents[1] / "folders" / "transformers_js.mjs"
    command = ["node", str(script), os.path.abspath(NODE_MODULES), str(folder), task, dtype, *texts]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.node
@pytest.mark.skipif(
    shutil.which("node") is None or not Path(NODE_MODULES, "@huggingface", "transformers").is_dir(),
    reason="needs Node, and @huggingface/transformers in BERTCLI_NODE_MODULES or node_modules",
)
def test_transformers_js_gives_the_same_answers(run_bertcli, spam: Pair, encoder: Pair) -> None:
    messages = read_examples(
        spam.model.parent / "dev.tsv", TaskSettings(type="classification", text="message"), labeled=False
    )
    # transformers.js has no limit of tokens of its own here
    texts = [text for example in messages if len(text := example.texts[0]) < 28]
    assert texts
    theirs = in_node(spam.onnx, "text-classification", "fp32", *texts)
    ours = answers(run_bertcli("predict", spam.onnx, *texts, "--json")[1])
    assert [row["label"] for row in ours] == [row["label"] for row in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one["probabilities"][one["label"]] == pytest.approx(other["score"], abs=1e-4)
    for dtype, file in (("fp32", "model.onnx"), ("q8", "model_quantized.onnx")):
        texts = ["the cat sat", "a dog ran"]
        vectors = in_node(encoder.onnx, "feature-extraction", dtype, *texts)
        ours = answers(run_bertcli("embed", encoder.onnx / "onnx" / file, *texts)[1])
        np.testing.assert_allclose(vectors, [row["vector"] for row in ours], atol=1e-4)
