"""A family of another shape, added by one file of data, is read, written, fine-tuned and asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
import torch
from safetensors.torch import load_file
from tokenizers import models, normalizers, pre_tokenizers, processors

from bertcli.batches.share import BatchSizes, Share
from bertcli.batches.stream import BatchStream
from bertcli.config.task import TaskSettings
from bertcli.families.registry import FAMILIES
from bertcli.folders.config_file import read_architecture
from bertcli.folders.convert import convert
from bertcli.folders.model_files import write_model_files
from bertcli.folders.model_folder import load_encoder_folder, load_model_folder, save_model_folder
from bertcli.folders.sentence_transformers import SentencePooling
from bertcli.folders.task_folder import declare_task, load_for_finetuning, load_task_folder
from bertcli.inference.fill_mask import fill_masks
from bertcli.inference.lines import Line
from bertcli.inference.vectors import Embedder
from bertcli.model.pretraining import PretrainingModel
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample
from bertcli.tasks.supervised import LabeledBatch, build_task
from bertcli.tokenizer.frame import Frame
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.loop import LoopSettings, train
from bertcli.training.optimizer import build_optimizer
from tests.batches.stores import make_store
from tests.decided import data_config
from tests.families.dummy import DUMMY
from tests.folders.folders import ODD, WORDS, change_config, rewrite, save_encoder, stirred

CPU = torch.device("cpu")
NAMES = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "mask_token": "<mask>",
}
VOCABULARY = [*NAMES.values(), *WORDS[5:]]
START, END, MASK = 2, 3, 4
SIZES = replace(ODD, family="dummy", num_segments=0, position_offset=2)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    """Read from files that somebody else might have written."""
    ids = {piece: i for i, piece in enumerate(VOCABULARY)}
    backend = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="<unk>"))
    backend.normalizer, backend.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    backend.post_processor = processors.RobertaProcessing(("</s>", END), ("<s>", START))
    backend.add_special_tokens(list(NAMES.values()))
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    backend.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **NAMES}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return Tokenizer.load(folder)


@pytest.fixture
def model() -> PretrainingModel:
    torch.manual_seed(0)
    return stirred(PretrainingModel(SIZES, pair_head=False))


@pytest.fixture
def folder(
    tmp_path: Path, tokenizer: Tokenizer, model: PretrainingModel, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setitem(FAMILIES, "dummy", DUMMY)
    save_model_folder(tmp_path / "dummy", model, tokenizer)
    return tmp_path / "dummy"


def test_its_rows_come_from_its_tokenizer(folder: Path, tokenizer: Tokenizer):
    assert tokenizer.frame == Frame((START,), (END, END), (END,), two_segments=False)
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id) == (0, 1, MASK)
    again = Tokenizer.load(folder)
    assert (again.hash, again.frame, again.mask_token) == (tokenizer.hash, tokenizer.frame, "<mask>")


def test_it_is_written_and_read_again_to_the_bit(folder: Path, model: PretrainingModel):
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["d_model"]) == ("dummy", ODD.hidden)
    assert config["architectures"] == ["DummyForMaskedLM"]
    names = set(load_file(folder / "model.safetensors"))
    assert {"dummy.words.weight", "dummy.layers.1.norm2.bias", "lm_head.bias"} <= names
    assert not any("segment" in name for name in names)
    loaded = load_model_folder(folder)
    assert loaded.model.architecture == SIZES
    assert loaded.report.new == loaded.report.left_aside == ()
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded.model.state_dict()[name], weight), name


def test_its_folders_keep_their_bytes(folder: Path, tmp_path: Path):
    loaded = load_model_folder(folder)
    save_model_folder(tmp_path / "again", loaded.model, loaded.tokenizer)
    for path in folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name
    assert convert(folder, tmp_path / "converted", None).difference == 0.0


def test_the_encoder_alone_has_bare_names(folder: Path, tmp_path: Path):
    encoder, tokenizer = load_encoder_folder(folder)
    save_encoder(tmp_path / "bare", encoder, tokenizer)
    assert "layers.0.q.weight" in load_file(tmp_path / "bare" / "model.safetensors")
    again, _ = load_encoder_folder(tmp_path / "bare")
    assert all(torch.equal(again.state_dict()[name], value) for name, value in encoder.state_dict().items())


def test_it_fills_a_mask(folder: Path):
    loaded = load_model_folder(folder)
    lines = [Line("The <mask> sat on the <mask>.", "here"), Line("cat" + " cat" * 13 + " <mask>", "there")]
    first, longest = fill_masks(loaded, lines, 3, 2, CPU)
    ids = torch.tensor([[START, 5, MASK, 9, 10, 5, MASK, 21, END]])
    with torch.inference_mode():
        logits_TV = loaded.model(ids, torch.zeros_like(ids)).mlm_logits_MV
    for position, predictions in zip((2, 6), first.masks, strict=True):
        probabilities_V = logits_TV[position].softmax(-1)
        assert [each.probability for each in predictions] == pytest.approx(
            [float(probabilities_V[each.id]) for each in predictions], rel=1e-5
        )
    assert len(longest.masks) == 1
    with pytest.raises(UserError, match="18 tokens with the special ones, but the model reads at most 17"):
        list(fill_masks(loaded, [Line("cat" + " cat" * 14 + " <mask>", "there")], 3, 2, CPU))
    with pytest.raises(UserError, match="no <mask> in"):
        list(fill_masks(loaded, [Line("the mask", "there")], 3, 2, CPU))


def test_it_makes_vectors(folder: Path):
    encoder, tokenizer = load_encoder_folder(folder)
    embedder = Embedder(
        encoder.eval(),
        tokenizer,
        SentencePooling("mean", normalize=False, max_length=None),
        CPU,
        precision="fp32",
        batch_size=2,
    )
    (made,) = embedder.embed([TextExample("here", {}, ("the cat sat",), None)])
    ids = torch.tensor([[START, 5, 7, 9, END]])
    with torch.inference_mode():
        hidden_BTD = encoder(ids, torch.zeros_like(ids))
    torch.testing.assert_close(made.vector_D, hidden_BTD[0].mean(0))


def test_it_learns_a_task_and_keeps_it(folder: Path, tmp_path: Path):
    settings = TaskSettings(type="classification", text=["a", "b"], max_length=16)
    loaded = load_for_finetuning(folder, settings, ("no", "yes"))
    assert loaded.report.new_parts() == ["pooler", "task head"]
    task, label = build_task(settings, ("no", "yes")), ("yes", "no")
    texts = [TextExample("here", {}, ("the cat", "a dog ran"), each) for each in label]
    items = task.encode(texts, loaded.tokenizer)
    assert list(items[0].rows[0].ids) == [START, 5, 7, END, END, 6, 8, 12, END]
    assert items[0].rows[0].second_starts == 9
    before = loaded.model.body.embeddings.word.weight.clone()
    loop = LoopSettings(seed=1, device=CPU, precision="fp32", max_grad_norm=1.0, rate=lambda step: 1e-2)
    batches = [LabeledBatch(tuple(items), pad_id=0).micro_batches(Share(2))]
    optimizer = build_optimizer(loaded.model, (0.9, 0.98), 0.01)
    (report,) = train(loaded.model, task, batches, optimizer, loop, 0)
    assert report.loss > 0
    assert not torch.equal(loaded.model.body.embeddings.word.weight, before)
    declared = declare_task(settings, ("no", "yes"))
    write_model_files(tmp_path / "task", loaded.model, loaded.tokenizer, declared)
    kept = load_task_folder(tmp_path / "task")
    assert (kept.settings, kept.labels) == (settings, ("no", "yes"))
    for name, weight in loaded.model.state_dict().items():
        assert torch.equal(kept.model.state_dict()[name], weight), name


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp"])
def test_its_rows_of_pretraining_are_those_of_its_frame(tokenizer: Tokenizer, objective: str):
    store = make_store([[3, 4, 2, 5], [6, 1, 3], [2, 2]], vocab_size=len(VOCABULARY))
    config = data_config(max_length=16, objective=objective, short_pair_probability=0.5)
    stream = BatchStream(store, tokenizer, config, seed=1, sizes=BatchSizes(16))
    batch = stream[0]
    ids_BT = batch.ids_BT.clone()
    ids_BT[batch.rows_M, batch.columns_M] = batch.targets_M
    assert not batch.segments_BT.any()
    inner = {"mlm": 0, "mlm+nsp": 2}[objective]
    for row, length in enumerate(batch.lengths_B.tolist()):
        ids = ids_BT[row, :length].tolist()
        ends = [place for place, token_id in enumerate(ids) if token_id == END]
        assert (ids[0], ids.count(START), ends[-1], len(ends)) == (START, 1, length - 1, inner + 1)
        assert inner == 0 or ends[1] == ends[0] + 1
        assert (ids_BT[row, length:] == tokenizer.pad_id).all()
    assert stream.max_tokens == 16 - 2 - inner


def test_what_is_not_the_familys_is_refused(folder: Path):
    change_config(folder, activation="relu")
    with pytest.raises(UserError, match="activation: 'relu' is not a Dummy; expected 'gelu'"):
        read_architecture(folder / "config.json")
    change_config(folder, activation="gelu")
    rewrite(folder, lambda weights: weights | {"dummy.segments.weight": torch.zeros(2, ODD.hidden)})
    with pytest.raises(UserError, match=r"1 weight does not fit this Dummy:\n  unknown: dummy\.segments"):
        load_model_folder(folder)


def test_a_family_that_is_not_registered_is_refused_with_those_that_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delitem(FAMILIES, "dummy")
    with pytest.raises(UserError, match=r"model_type is 'dummy'; bertcli reads 'bert' \(BERT\)"):
        load_model_folder(folder)
