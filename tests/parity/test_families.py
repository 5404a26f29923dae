"""Every family against transformers: hidden states, heads, gradients; folders both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

transformers = pytest.importorskip("transformers")

from bertcli.families.registry import FAMILIES  # noqa: E402
from bertcli.folders.convert import convert  # noqa: E402
from bertcli.folders.model_files import write_model_files  # noqa: E402
from bertcli.folders.model_folder import load_encoder_folder, load_model_folder  # noqa: E402
from bertcli.folders.task_folder import declare_task, load_task_folder  # noqa: E402
from bertcli.folders.weights import hf_name, modern_name  # noqa: E402
from bertcli.model.seam import plain_path  # noqa: E402
from tests.folders.folders import SETTINGS, head_of  # noqa: E402
from tests.parity.families import (  # noqa: E402
    CASES,
    FIRST,
    Case,
    class_of,
    for_transformers,
    rows,
    saved,
    saved_task,
    their_config,
)

LENGTHS = ((13, 4, 1), (140, 131, 66), (7,), (30, 30))
"""Padded; longer than 128 and than any window; a row alone; packed to the full."""
TOLERANCE = 1e-5


def assert_close(got: Tensor, want: Tensor, mask_BT: Tensor | None, what: str) -> None:
    """Where the tokens are real, within an absolute 1e-5 of values that are of the order of 1."""
    if mask_BT is not None and got.shape[:2] == mask_BT.shape:
        got, want = got[mask_BT], want[mask_BT]
    scale = max(1.0, float(want.abs().max()))
    torch.testing.assert_close(got, want, rtol=0, atol=TOLERANCE * scale, msg=lambda text: f"{what}: {text}")


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
@torch.no_grad()
def test_hidden_states_and_words_are_those_of_transformers(
    tmp_path: Path, case: Case, lengths: tuple[int, ...]
) -> None:
    theirs = saved(tmp_path, case, "masked-lm")
    loaded = load_model_folder(tmp_path, pairs=False)
    assert loaded.report.new == loaded.report.left_aside == ()
    inputs = rows(lengths, case)
    want = theirs(**for_transformers(case, inputs), output_hidden_states=True)
    model = loaded.model.eval()
    hidden_states, _ = model.body.trace(*inputs)
    for number, (got, wanted) in enumerate(zip(hidden_states, want.hidden_states, strict=True)):
        assert_close(got, wanted, inputs[2], f"hidden state {number}")
    for fast in (True, False):
        if fast:
            hidden, words = model.body(*inputs), model(*inputs).mlm_logits_MV
        else:
            with plain_path():
                hidden, words = model.body(*inputs), model(*inputs).mlm_logits_MV
        assert_close(hidden, want.hidden_states[-1], inputs[2], f"last, fast={fast}")
        assert_close(words.unflatten(0, inputs[0].shape), want.logits, inputs[2], f"words, fast={fast}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_of_the_words_are_those_of_transformers(tmp_path: Path, case: Case) -> None:
    theirs = saved(tmp_path, case, "masked-lm")
    model = load_model_folder(tmp_path, pairs=False).model.eval()
    inputs = rows((140, 9, 70), case)
    masked_M = torch.tensor([3, 77, 139, 141, 148, 281, 300])
    targets_M = torch.arange(7) + 9
    output = model(*inputs, masked_M)
    torch.nn.functional.cross_entropy(output.mlm_logits_MV, targets_M).backward()
    logits_BTV = theirs(**for_transformers(case, inputs)).logits
    torch.nn.functional.cross_entropy(logits_BTV.flatten(0, 1)[masked_M], targets_M).backward()
    want = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    compare_gradients(model, want, case, "masked-lm")


def compare_gradients(model: Any, want: dict[str, Tensor | None], case: Case, kind: str) -> None:
    """The same tensors, and differences within 1e-5 of the norm of all gradients."""
    from bertcli.folders.model_files import hf_weights

    named = {name: parameter.grad for name, parameter in model.named_parameters()}
    named = {name: grad for name, grad in named.items() if grad is not None}
    got = hf_weights(FAMILIES[case.model_type], named, kind, heads=model.architecture.heads)
    family = FAMILIES[case.model_type]
    words = hf_name(family, "body.embeddings.word.weight")
    # In some classes the decoder is the parameter, and the embeddings are its copy.
    wanted = {modern_name(family, name): grad for name, grad in want.items() if grad is not None}
    wanted = {words if name == family.tied_decoder else name: grad for name, grad in wanted.items()}
    assert got.keys() == wanted.keys()
    norm = torch.cat([grad.flatten() for grad in wanted.values()]).norm()
    difference = torch.cat([(got[name] - grad).flatten() for name, grad in wanted.items()]).norm()
    assert difference <= TOLERANCE * norm
    for name, grad in wanted.items():
        assert (got[name] - grad).norm() <= TOLERANCE * max(grad.norm(), 1e-2 * norm), name


@torch.no_grad()
def their_logits(model: Any, case: Case, inputs: Any, kind: str) -> Tensor:
    named = for_transformers(case, inputs)
    if kind == "choices":  # every row is a choice of the same question
        return model(**{name: value[None] for name, value in named.items()}).logits.T
    output = model(**named)
    if kind == "questions":
        return torch.stack([output.start_logits, output.end_logits], dim=-1)
    return output.logits


def kinds(case: Case) -> list[str]:
    return [kind for kind in SETTINGS if head_of(kind) in FAMILIES[case.model_type].heads]


TASKS = [pytest.param(case, kind, id=f"{case}-{kind}") for case in FIRST for kind in kinds(case)]


@pytest.mark.parametrize(("case", "kind"), TASKS)
def test_a_task_model_of_transformers_answers_the_same_here(tmp_path: Path, case: Case, kind: str) -> None:
    theirs = saved_task(tmp_path, case, kind)
    loaded = load_task_folder(tmp_path)
    assert loaded.report.new == loaded.report.left_aside == ()
    assert loaded.settings.type == SETTINGS[kind].type
    for lengths in LENGTHS[:2]:
        inputs = rows(lengths, case)
        with torch.no_grad():
            got = loaded.model.eval()(*inputs)
        assert_close(got, their_logits(theirs, case, inputs, kind), inputs[2], kind)


@pytest.mark.parametrize(("case", "kind"), TASKS)
def test_transformers_loads_what_we_save(tmp_path: Path, case: Case, kind: str) -> None:
    saved_task(tmp_path / "theirs", case, kind)
    loaded = load_task_folder(tmp_path / "theirs")
    declared = declare_task(SETTINGS[kind], loaded.labels)
    write_model_files(tmp_path / "ours", loaded.model, loaded.tokenizer, declared)
    again, info = class_of(case, head_of(kind)).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    inputs = rows((13, 4, 1), case)
    with torch.no_grad():
        got = loaded.model.eval()(*inputs)
    assert_close(got, their_logits(again.eval(), case, inputs, kind), inputs[2], kind)
    assert_same_tensors(tmp_path / "theirs", tmp_path / "ours")


def assert_same_tensors(one: Path, other: Path) -> None:
    before, after = (load_file(folder / "model.safetensors") for folder in (one, other))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name


@pytest.mark.parametrize("kind", ["masked-lm", "encoder", "pretraining", "discriminator"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_folder_keeps_its_tensors_and_names(
    tmp_path: Path, case: Case, kind: str, recwarn: pytest.WarningsRecorder
) -> None:
    if kind not in FAMILIES[case.model_type].classes:
        pytest.skip("transformers has no such class of this family")
    saved(tmp_path / "theirs", case, kind)
    assert convert(tmp_path / "theirs", tmp_path / "ours", None).difference == 0.0
    assert_same_tensors(tmp_path / "theirs", tmp_path / "ours")
    _, info = class_of(case, kind).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    assert not [warning for warning in recwarn if "bertcli" not in str(warning.filename)]
    before, after = (
        transformers.AutoConfig.from_pretrained(tmp_path / name).to_dict() for name in ("theirs", "ours")
    )
    ignored = {"_name_or_path", "dtype", "transformers_version"}
    ignored |= {f"{token}_token_id" for token in ("bos", "eos", "cls", "sep")}  # of our tokenizer
    compared = their_config(Case(case.model_type)).to_dict().keys() & after.keys() - ignored
    assert {key: after[key] for key in compared} == {key: before[key] for key in compared}
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["model_type"] == case.model_type


@pytest.mark.parametrize("case", FIRST, ids=str)
@torch.no_grad()
def test_the_encoder_alone_and_its_pooler(tmp_path: Path, case: Case) -> None:
    theirs = saved(tmp_path, case, "encoder")
    encoder, _ = load_encoder_folder(tmp_path)
    inputs = rows((13, 4, 1), case)
    got, want = encoder.eval()(*inputs), theirs(**for_transformers(case, inputs))
    assert_close(got, want.last_hidden_state, inputs[2], "last")
    pooled = want.get("pooler_output")
    assert (encoder.pooler is None) == (pooled is None)
    if encoder.pooler is not None:
        assert_close(encoder.pooler(got[:, 0]), pooled, None, "pooled")
