"""Against a checkpoint that TensorFlow wrote (`tests/folders/write_fixture.py`)."""

import shutil

import numpy as np
import pytest

from bertcli.folders.tf_checkpoint import TfCheckpoint
from bertcli.system.errors import UserError
from tests.folders.tables import table, varint
from tests.folders.tf_values import TF_CHECKPOINT, tf_shapes, tf_value

DATA = "bert_model.ckpt.data-00000-of-00001"


@pytest.fixture
def prefix(tmp_path):
    shutil.copytree(TF_CHECKPOINT, tmp_path / "tf")
    return tmp_path / "tf" / "bert_model.ckpt"


def entry(dtype=1, shape=(2, 2), size=16, slices=b""):
    dimensions = b"".join(b"\x12" + varint(len(d)) + d for d in (b"\x08" + varint(n) for n in shape))
    message = b"\x08" + varint(dtype) + b"\x12" + varint(len(dimensions)) + dimensions
    return message + b"\x28" + varint(size) + slices


def index_of(prefix, header=b"\x08\x01", **fields):
    path = prefix.with_name(f"{prefix.name}.index")
    path.write_bytes(table({b"": header, b"x": entry(**fields)}))
    return path


def test_every_tensor_to_the_bit(prefix):
    checkpoint = TfCheckpoint(prefix)
    assert set(checkpoint.entries) == {*tf_shapes(), "global_step"}
    for name, shape in tf_shapes().items():
        values = checkpoint.read(name)
        assert values.dtype == np.float32
        assert values.shape == shape
        assert np.array_equal(values, tf_value(name, shape)), name


def test_a_damaged_tensor_is_named(prefix):
    path = prefix.with_name(DATA)
    data = bytearray(path.read_bytes())
    offset = TfCheckpoint(prefix).entries["bert/pooler/dense/kernel"].offset
    data[offset + 5] ^= 1
    path.write_bytes(data)
    checkpoint = TfCheckpoint(prefix)
    checkpoint.read("bert/pooler/dense/bias")
    with pytest.raises(UserError, match=f"{DATA}: the checksum of bert/pooler/dense/kernel is wrong. Copy"):
        checkpoint.read("bert/pooler/dense/kernel")


def test_a_data_file_that_was_cut_off(prefix):
    path = prefix.with_name(DATA)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match=f"{DATA}: ends before cls/seq_relationship/output_weights does"):
        TfCheckpoint(prefix).read("cls/seq_relationship/output_weights")


def test_a_data_file_that_is_not_there(prefix):
    prefix.with_name(DATA).unlink()
    with pytest.raises(UserError, match=f"{DATA}: cannot be read: No such file or directory. Copy it beside"):
        TfCheckpoint(prefix).read("bert/pooler/dense/bias")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dtype": 9}, "x has TensorFlow's data type 9; expected a float32 tensor in one piece"),
        ({"slices": b"\x3a\x00"}, "x is stored in slices; expected a float32 tensor in one piece"),
        ({"size": 12}, r"x of shape \(2, 2\) cannot have 12 bytes"),
    ],
)
def test_tensors_that_are_no_weights(prefix, fields, message):
    path = index_of(prefix, **fields)
    with pytest.raises(UserError, match=f"{path}: {message}"):
        TfCheckpoint(prefix).read("x")


def test_a_big_endian_checkpoint_is_refused(prefix):
    index_of(prefix, header=b"\x08\x01\x10\x01")
    with pytest.raises(UserError, match="was written on a big-endian machine"):
        TfCheckpoint(prefix)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not a table", "it does not end with the footer"),
        (table({b"x": entry()}), "it has no header"),
        (table({b"": b"\x08\x01", b"x": b"\x12\x09"}), "a field is cut off"),
        (table({b"": b"\x08\x01", b"\xff": entry()}), "codec can't decode"),
    ],
)
def test_a_damaged_index(prefix, content, reason):
    path = prefix.with_name("bert_model.ckpt.index")
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=f"{path}: cannot be read as the index of a TensorFlow .*: .*{reason}"
    ):
        TfCheckpoint(prefix)


def test_an_index_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.index: cannot be read: No such file"):
        TfCheckpoint(tmp_path / "nothing")
