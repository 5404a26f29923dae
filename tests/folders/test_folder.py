import json
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import load_file, save_file

from bertcli.folders.model_folder import load_model_folder, save_model_folder
from bertcli.model.pretraining import PretrainingModel
from bertcli.system.errors import UserError
from bertcli.tokenizer.train import train_tokenizer
from tests.folders.folders import (
    ODD,
    added,
    random_model,
    renamed,
    rewrite,
    saved_model,
    saved_task,
    tiny_tokenizer,
    without,
)

MLM_HEAD = {
    "cls.predictions.bias",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.transform.LayerNorm.bias",
}
POOLER = {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
NSP_HEAD = {"cls.seq_relationship.weight", "cls.seq_relationship.bias"}
needs_onnx = pytest.mark.skipif(find_spec("onnx") is None, reason="the extra onnx is not installed")


@pytest.fixture
def folder(tmp_path):
    saved_model(tmp_path / "model")
    return tmp_path / "model"


def assert_same(got, want):
    assert list(got.state_dict()) == list(want.state_dict())
    for name, value in want.state_dict().items():
        assert torch.equal(got.state_dict()[name], value), name


@pytest.mark.parametrize("nsp", [True, False])
def test_a_saved_model_comes_back_to_the_bit(tmp_path, nsp):
    model = saved_model(tmp_path, nsp=nsp)
    loaded = load_model_folder(tmp_path)
    assert_same(loaded.model, model)
    assert loaded.model.architecture == model.architecture
    assert loaded.report.new == loaded.report.left_aside == ()
    assert len(loaded.report.loaded) == len(model.state_dict())
    assert loaded.tokenizer.vocab_size == tiny_tokenizer().vocab_size
    assert all(parameter.requires_grad for parameter in loaded.model.parameters())


def test_the_same_model_gives_the_same_bytes(tmp_path):
    saved_model(tmp_path / "one")
    model = load_model_folder(tmp_path / "one").model
    save_model_folder(tmp_path / "two", model, tiny_tokenizer())
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert "model.safetensors" in files
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_the_model_card_is_written_where_there_is_one(tmp_path):
    save_model_folder(tmp_path, random_model(), tiny_tokenizer(), card="# A model\n")
    assert (tmp_path / "README.md").read_text() == "# A model\n"


def test_the_card_names_the_classes_that_do_not_suit_the_tokenizer(tmp_path):
    texts = ["the cat sat on the mat"] * 20
    other = train_tokenizer(texts, vocab_size=300, kind="byte-bpe")
    model = PretrainingModel(replace(ODD, vocab_size=other.vocab_size))
    save_model_folder(tmp_path / "other", model, other, card="# A card\n")
    assert "`BertTokenizer`, `BertTokenizerFast` do not suit" in (tmp_path / "other/README.md").read_text()


def test_whoever_may_read_the_config_may_read_the_weights(folder):
    assert (folder / "model.safetensors").stat().st_mode == (folder / "config.json").stat().st_mode


def test_a_loaded_model_does_not_depend_on_its_file_any_more(folder):
    loaded = load_model_folder(folder).model
    before = {name: value.clone() for name, value in loaded.state_dict().items()}
    size = (folder / "model.safetensors").stat().st_size
    with open(folder / "model.safetensors", "r+b") as file:
        file.write(b"\0" * size)
    assert all(torch.equal(value, before[name]) for name, value in loaded.state_dict().items())


def test_a_disk_that_refuses_is_an_os_error(tmp_path):
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(OSError, match="safetensors"):
        save_model_folder(tmp_path, random_model(), tiny_tokenizer())


@pytest.mark.parametrize(
    ("change", "to"),
    [
        (lambda weights: weights, "pytorch_model.bin"),
        (renamed("bert.", ""), "model.safetensors"),
        (renamed("LayerNorm.weight", "LayerNorm.gamma"), "pytorch_model.bin"),
        (renamed("LayerNorm.bias", "LayerNorm.beta"), "model.safetensors"),
        (renamed("cls.predictions.bias", "cls.predictions.decoder.bias"), "model.safetensors"),
    ],
)
def test_old_formats_and_spellings(folder, change, to):
    rewrite(folder, change, to)
    loaded = load_model_folder(folder)
    assert_same(loaded.model, random_model())
    assert loaded.report.new == loaded.report.left_aside == ()


def test_a_second_copy_of_what_is_tied_is_taken_for_granted(folder):
    def repeat(weights):
        words = weights["bert.embeddings.word_embeddings.weight"].clone()
        bias = weights["cls.predictions.bias"].clone()
        return weights | {"cls.predictions.decoder.weight": words, "cls.predictions.decoder.bias": bias}

    rewrite(folder, repeat)
    loaded = load_model_folder(folder)
    assert_same(loaded.model, random_model())
    assert loaded.report.left_aside == ()


def test_half_precision_weights_are_read_as_fp32(folder):
    rewrite(folder, lambda weights: {name: value.bfloat16() for name, value in weights.items()})
    model = load_model_folder(folder).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    want = random_model().body.embeddings.word.weight.bfloat16().float()
    assert torch.equal(model.body.embeddings.word.weight, want)


@pytest.mark.parametrize("stem", ["model", "pytorch_model"])
def test_weights_split_over_several_files(folder, stem):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    suffix = "safetensors" if stem == "model" else "bin"
    weight_map = {}
    for i, name in enumerate(sorted(weights)):
        weight_map[name] = f"{stem}-0000{i % 3 + 1}-of-00003.{suffix}"
    for file in sorted(set(weight_map.values())):
        part = {name: weights[name].clone() for name in weights if weight_map[name] == file}
        (save_file if suffix == "safetensors" else torch.save)(part, folder / file)
    index = folder / f"{stem}.{suffix}.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    assert_same(load_model_folder(folder).model, random_model())

    (folder / f"{stem}-00002-of-00003.{suffix}").unlink()
    with pytest.raises(UserError, match=f"lists files that are missing: {stem}-00002-of-00003.{suffix}"):
        load_model_folder(folder)
    index.write_text("{}")
    with pytest.raises(UserError, match="has no weight_map from weights to files"):
        load_model_folder(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        ("classification", ("predict", "MODEL", "the cat", "a dog")),
        ("classification", ("predict", "MODEL", "--json", "the cat", "a dog")),
        ("classification", ("evaluate", "MODEL", "--data", "TEXT")),
        pytest.param("classification", ("export", "MODEL", "OUT"), marks=needs_onnx),
        (None, ("embed", "MODEL", "the cat")),
        (None, ("similarity", "MODEL", "the cat", "a dog")),
        (None, ("predict-mask", "MODEL", "the [MASK] sat")),
        (None, ("predict-next", "MODEL", "the cat", "a dog")),
        (None, ("evaluate", "MODEL", "--corpus", "TEXT")),
        pytest.param(None, ("export", "MODEL", "OUT"), marks=needs_onnx),
    ],
)
def test_a_weight_that_is_not_finite_is_refused_by_name(run_bertcli, tmp_path, task, arguments, value):
    folder = tmp_path / "model"
    saved_model(folder) if task is None else saved_task(folder, task)
    name = "bert.encoder.layer.1.output.dense.weight"

    def damage(weights):
        weights[name][2, 3] = value
        return weights

    rewrite(folder, damage)
    (tmp_path / "text.tsv").write_text("premise\thypothesis\tgold\nthe cat sat\ta dog\tno\n")
    places = {"MODEL": folder, "TEXT": tmp_path / "text.tsv", "OUT": tmp_path / "out"}
    code, out, err = run_bertcli(*(places.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    assert f"model.safetensors: NaN or infinite values in {name}:" in err


def test_two_files_that_hold_a_weight_differently_are_refused(folder):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    name = "cls.predictions.bias"
    save_file(weights, folder / "a.safetensors")
    save_file({name: weights[name]}, folder / "b.safetensors")
    places = dict.fromkeys(weights, "a.safetensors") | {name: "b.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert_same(load_model_folder(folder).model, random_model())
    save_file({name: weights[name] + 1}, folder / "b.safetensors")
    with pytest.raises(UserError, match=r"b\.safetensors: holds cls\.predictions\.bias, as another file"):
        load_model_folder(folder)


def test_a_bare_encoder_gets_new_heads_and_says_so(folder):
    rewrite(folder, lambda weights: renamed("bert.", "")(without("cls.")(weights)))
    torch.manual_seed(3)
    loaded = load_model_folder(folder, pairs=True)
    assert set(loaded.report.new) == MLM_HEAD | NSP_HEAD
    assert loaded.report.new_parts() == ["masked-language-model head", "next-sentence head"]
    assert not loaded.report.has("mlm_head")
    assert torch.equal(loaded.model.mlm_head.norm.weight, torch.ones(15))
    assert loaded.model.mlm_head.dense.weight.std().item() == pytest.approx(0.4, rel=0.15)  # not truncated
    assert_same(loaded.model.body, random_model().body)


def test_a_masked_lm_gets_pooler_and_pair_head_only_if_asked(folder):
    rewrite(folder, without("cls.seq_relationship", "bert.pooler"))
    assert load_model_folder(folder).model.pair_head is None
    loaded = load_model_folder(folder, pairs=True)
    assert set(loaded.report.new) == POOLER | NSP_HEAD
    assert loaded.report.new_parts() == ["pooler", "next-sentence head"]
    assert loaded.report.has("mlm_head")


def test_a_model_without_nsp_leaves_the_folders_pooler_and_head_aside(folder):
    loaded = load_model_folder(folder, pairs=False)
    assert loaded.model.pooler is None
    assert set(loaded.report.left_aside) == POOLER | NSP_HEAD


def test_other_heads_and_position_buffers_are_left_aside(folder):
    rewrite(
        folder,
        lambda weights: added(
            classifier__weight=torch.zeros(3, 15), bert__embeddings__position_ids=torch.arange(19)[None]
        )(without("cls.")(weights)),
    )
    loaded = load_model_folder(folder)
    assert set(loaded.report.left_aside) >= {"classifier.weight", "bert.embeddings.position_ids"}


def test_new_heads_depend_on_torchs_seed(folder):
    rewrite(folder, without("cls."))

    def head(seed):
        torch.manual_seed(seed)
        return load_model_folder(folder).model.mlm_head.dense.weight

    assert torch.equal(head(1), head(1))
    assert not torch.equal(head(1), head(2))


def test_dropout_is_the_folders_unless_given(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2}
    (folder / "config.json").write_text(json.dumps(config))
    own = load_model_folder(folder).model
    given = load_model_folder(folder, adapt=lambda sizes: sizes.with_dropout(0.0)).model

    def rates(model):
        layer = model.body.encoder.layers[0]
        return model.body.embeddings.dropout.p, layer.dropout.p, layer.attention.dropout

    assert rates(own) == (0.3, 0.3, 0.2)
    assert rates(given) == (0.0, 0.0, 0.0)
    assert given.architecture.dropout == given.architecture.attention_dropout == 0.0
