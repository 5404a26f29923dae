"""A pair task with one number beside transformers, which sentence-transformers' `CrossEncoder` runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch.nn.modules
from torch import Tensor

transformers = pytest.importorskip("transformers")

from bertcli.folders.model_files import write_model_files  # noqa: E402
from bertcli.folders.task_folder import declare_task  # noqa: E402
from bertcli.model.task_models import build_task_model  # noqa: E402
from bertcli.tasks.regression import Regression  # noqa: E402
from tests.folders.folders import ODD, SETTINGS, stirred, tiny_tokenizer  # noqa: E402
from tests.labeled_examples import draw_examples  # noqa: E402
from tests.tasks.contract import batch  # noqa: E402

LONG = "a dog sat on the mat in the dark house of night"
PAIRS = [("the cat", "a dog ran"), ("was it the cat", LONG), (LONG, LONG), (LONG, LONG[12:])]
"""Of the last three the model reads a part: of B, and of both with an odd number of tokens between them."""
MAX_LENGTH = 18


@pytest.fixture(params=[False, True], ids=["value", "probability"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    torch.manual_seed(0)
    keys = {"sigmoid": request.param, "max_length": MAX_LENGTH}
    settings = SETTINGS["regression"].model_copy(update=keys)
    model = stirred(build_task_model("sequences", ODD))
    write_model_files(tmp_path, model, tiny_tokenizer(), declare_task(settings, ()))
    return tmp_path


@torch.no_grad()
def scores_of_transformers(folder: Path) -> Tensor:
    """As `CrossEncoder.predict` computes them: rows cut as the tokenizer says, then the named function."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    named = model.config.sentence_transformers["activation_fn"].removeprefix("torch.nn.modules.")
    module, _, name = named.rpartition(".")
    activation = getattr(getattr(torch.nn.modules, module), name)()
    rows = tokenizer(PAIRS, padding=True, truncation="longest_first", return_tensors="pt")
    assert rows["input_ids"].shape == (len(PAIRS), MAX_LENGTH)
    return activation(model(**rows).logits)[:, 0]


def test_predict_gives_the_same_scores(run_bertcli, folder: Path) -> None:
    (folder / "pairs.tsv").write_text("a\tb\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS))
    code, out, _ = run_bertcli("predict", folder, "--input", folder / "pairs.tsv")
    assert code == 0
    values = torch.tensor([json.loads(line)["value"] for line in out.splitlines()])
    assert float(values.std()) > 0.01
    torch.testing.assert_close(values, scores_of_transformers(folder), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sigmoid", [False, True])
def test_the_loss_is_that_of_transformers(tmp_path: Path, sigmoid: bool) -> None:
    settings = SETTINGS["regression"].model_copy(update={"sigmoid": sigmoid})
    task, ours = Regression(settings), stirred(build_task_model("sequences", ODD))
    write_model_files(tmp_path, ours, tiny_tokenizer(), declare_task(settings, ()))
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    whole = batch(task.encode(draw_examples("regression", 6), tiny_tokenizer()))
    rows = whole.rows
    assert rows.mask_BT is not None
    inputs = {"input_ids": rows.ids_BT, "token_type_ids": rows.segments_BT}
    targets_B1 = torch.tensor([[item.target] for item in whole.items])
    with torch.no_grad():
        logits = ours(rows.ids_BT, rows.segments_BT, rows.mask_BT)
        want = theirs(**inputs, attention_mask=rows.mask_BT.long(), labels=targets_B1).loss
    torch.testing.assert_close(task.term(logits, whole).loss / task.count(whole), want)
