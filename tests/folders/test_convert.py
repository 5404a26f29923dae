import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from bertcli.folders import convert as module
from bertcli.folders.config_file import NEW_VOCABULARY, learns_anew
from bertcli.folders.convert import convert
from bertcli.folders.lengths import trained_length
from bertcli.folders.locate import resolve_model
from bertcli.folders.model_folder import load_encoder_folder, load_model_folder, save_model_folder
from bertcli.folders.task_folder import load_task_folder
from bertcli.system.errors import UserError
from tests.folders.folders import (
    LABELS,
    SETTINGS,
    added,
    random_model,
    renamed,
    rewrite,
    save_encoder,
    saved_model,
    saved_task,
    tiny_tokenizer,
    without,
)
from tests.folders.tf_values import TF_CHECKPOINT
from tests.tokenizer.tokenizers_of import change_json


@pytest.fixture
def source(tmp_path):
    return tmp_path / "source"


@pytest.fixture
def result(tmp_path):
    return tmp_path / "result"


def weights_of(folder):
    return load_file(folder / "model.safetensors")


def assert_same_weights(folder, want):
    got = weights_of(folder)
    assert got.keys() == want.keys()
    for name, value in want.items():
        assert torch.equal(got[name], value), name


@pytest.mark.parametrize("nsp", [True, False])
def test_a_pickle_of_old_names_becomes_clean(source, result, nsp):
    saved_model(source, nsp=nsp)
    want = weights_of(source)
    rewrite(source, renamed("LayerNorm.weight", "LayerNorm.gamma"))
    rewrite(source, renamed("LayerNorm.bias", "LayerNorm.beta"))
    rewrite(source, added(bert__embeddings__position_ids=torch.arange(19)[None]), to="pytorch_model.bin")
    (source / "README.md").write_text("# What it is\n")
    done = convert(source, result, None)
    assert done.difference == 0.0
    assert done.report.new == ()
    assert done.report.left_aside == ("bert.embeddings.position_ids",)
    assert_same_weights(result, want)
    assert (load_model_folder(result).model.pair_head is not None) == nsp
    assert sorted(path.name for path in result.iterdir()) == [
        *("README.md", "config.json", "model.safetensors"),
        *("tokenizer.json", "tokenizer_config.json", "vocab.txt"),
    ]
    assert (result / "README.md").read_text() == "# What it is\n"


def test_weights_split_over_files_become_one(source, result):
    saved_model(source)
    want = {name: value.clone() for name, value in weights_of(source).items()}
    (source / "model.safetensors").unlink()
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(want)}
    for file in set(files.values()):
        save_file({name: want[name] for name in want if files[name] == file}, source / file)
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    convert(source, result, None)
    assert_same_weights(result, want)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_task_model_keeps_its_head_labels_and_settings(source, result, kind):
    saved_task(source, kind, classifier_dropout=0.3)
    convert(source, result, None)
    assert_same_weights(result, weights_of(source))
    loaded = load_task_folder(result)
    assert (loaded.settings, loaded.labels) == (SETTINGS[kind], LABELS.get(kind, ()))
    assert loaded.model.architecture.classifier_dropout == 0.3


@pytest.mark.parametrize("with_pooler", [True, False])
def test_a_bare_encoder_stays_bare(source, result, with_pooler):
    saved_model(source)
    rewrite(source, without(*(("cls.",) if with_pooler else ("cls.", "bert.pooler"))))
    assert convert(source, result, None).difference == 0.0
    model, _ = load_encoder_folder(result)
    assert (model.pooler is not None) == with_pooler
    assert json.loads((result / "config.json").read_text())["architectures"] == ["BertModel"]


def test_a_next_sentence_model_keeps_its_head(source, result):
    saved_model(source)
    rewrite(source, without("cls.predictions"))
    want = weights_of(source)
    done = convert(source, result, None)
    assert (done.difference, done.report.left_aside) == (0.0, ())
    assert_same_weights(result, want)
    config = json.loads((result / "config.json").read_text())
    assert config["architectures"] == ["BertForNextSentencePrediction"]
    assert load_model_folder(result).report.has("pair_head", "pooler")


def test_heads_that_no_class_holds_together_are_named(source, result):
    saved_model(source, nsp=False)
    rewrite(source, added(classifier__weight=torch.zeros(2, 15), cls__seq_relationship__bias=torch.zeros(2)))
    done = convert(source, result, None)
    assert sorted(done.report.dropped()) == ["classifier.weight", "cls.seq_relationship.bias"]
    assert load_model_folder(result).report.has("mlm_head")


def test_what_makes_sentence_vectors_comes_along(source, result):
    saved_model(source / "whole")
    save_encoder(source, load_encoder_folder(source / "whole")[0], tiny_tokenizer())
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    modules = [{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}]
    (source / "modules.json").write_text(json.dumps(modules))
    convert(source, result, None)
    for name in ("modules.json", "1_Pooling/config.json"):
        assert (result / name).read_text() == (source / name).read_text()


def test_the_length_it_was_trained_on_comes_along(source, result):
    save_model_folder(source, random_model(), tiny_tokenizer(), trained_length=12)
    convert(source, result, None)
    assert trained_length(result) == 12


def test_the_note_on_a_new_vocabulary_comes_along(source, result):
    saved_model(source)
    change_json(source / "config.json", **{NEW_VOCABULARY: True})
    convert(source, result, None)
    assert learns_anew(str(result))


@pytest.mark.parametrize("name", ["", "bert_model.ckpt", "bert_model.ckpt.index"])
def test_a_tensorflow_checkpoint(result, name):
    done = convert(TF_CHECKPOINT / name, result, None)
    assert done.difference == 0.0
    assert done.lowercase
    assert set(done.optimizer) == {
        "bert/embeddings/LayerNorm/gamma/adam_m",
        "bert/embeddings/LayerNorm/gamma/adam_v",
        "cls/predictions/transform/LayerNorm/gamma/adam_m",
        "cls/predictions/transform/LayerNorm/gamma/adam_v",
        "global_step",
    }
    assert load_model_folder(result).report.has("pair_head", "pooler")


def test_case_of_a_tensorflow_checkpoint_may_be_given(result):
    assert not convert(TF_CHECKPOINT, result, True).lowercase
    assert not load_model_folder(result).tokenizer.lowercase


def test_case_of_a_folder_is_its_own(source, result):
    saved_model(source)
    with pytest.raises(
        UserError, match="--cased and --uncased are for TensorFlow checkpoints; the tokenizer of"
    ):
        convert(source, result, True)


def test_other_verbs_send_a_checkpoint_here():
    with pytest.raises(UserError, match="holds a TensorFlow checkpoint; convert it first: bertcli convert"):
        resolve_model(TF_CHECKPOINT)


def test_an_empty_folder_is_written_and_a_full_one_is_not(source, result, tmp_path):
    saved_model(source)
    result.mkdir()
    convert(source, result, None)
    for taken in (result, source / "config.json"):
        with pytest.raises(UserError, match="exists already; name a new folder, or an empty one"):
            convert(source, taken, None)
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(UserError, match="link: exists already"):
        convert(source, tmp_path / "link", None)


def test_nothing_is_left_of_a_result_that_computes_something_else(source, result, monkeypatch):
    saved_model(source)
    read, files = module.read_model_files, []

    def with_an_error(folder):
        files.append(read(folder))
        if len(files) == 2:
            files[1].weights["bert.embeddings.LayerNorm.bias"] += 1e-3
        return files[-1]

    monkeypatch.setattr(module, "read_model_files", with_an_error)
    with pytest.raises(
        UserError, match=r"output that differs from the source's by 0\.\d+, more than 1e-06; nothing was kept"
    ):
        convert(source, result, None)
    assert not result.exists()


def test_a_tokenizer_that_encodes_otherwise_is_found(source, result, monkeypatch):
    saved_model(source)
    read, calls = module.read_model_files, []

    def with_another_tokenizer(folder):
        calls.append(folder)
        if len(calls) == 2:
            for name, key in (("tokenizer.json", "lowercase"), ("tokenizer_config.json", "do_lower_case")):
                text = (folder / name).read_text()
                (folder / name).write_text(text.replace(f'"{key}": true', f'"{key}": false'))
        return read(folder)

    monkeypatch.setattr(module, "read_model_files", with_another_tokenizer)
    with pytest.raises(
        UserError, match="the tokenizer that was written encodes differently from the source's"
    ):
        convert(source, result, None)


def test_a_place_that_may_not_be_written(source, tmp_path):
    saved_model(source)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"could not be written: .*; name a folder that can be written"):
        convert(source, tmp_path / "file" / "below", None)
