"""Model folders with junk in any of their files: a model, or one message; and no code is ever run."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from hypothesis import example, given, reject
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from bertcli.folders.lengths import check_length
from bertcli.folders.locate import resolve_model
from bertcli.folders.model_folder import load_encoder_folder, load_model_folder
from bertcli.folders.sentence_transformers import read_pooling
from bertcli.folders.task_folder import load_task_folder
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.folders.folders import SETTINGS
from tests.fuzz.good import copy_of, good_model, good_task
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import JUNK, as_json, damaged, fuzzed, json_files, mutated, place, put

IDS = torch.tensor([[2, 5, 6, 3]])


def use_model(folder: Path) -> None:
    """Load what a folder holds, as the commands do, and compute with it."""
    model = resolve_model(folder)
    check_length(model, 16, "--max-length")
    read_pooling(model)
    loaded = load_model_folder(model)
    load_encoder_folder(model)
    loaded.tokenizer.encode_with_spans(["the cat sat. [MASK] é"])
    with torch.inference_mode():
        loaded.model.eval()(IDS, torch.zeros_like(IDS))


def use_task(folder: Path) -> None:
    loaded = load_task_folder(folder)
    with torch.inference_mode():
        loaded.model.eval()(IDS, torch.zeros_like(IDS))


def use(good: Path, files: Mapping[str, bytes | None], label: str, function: Callable[[Path], None]) -> None:
    """A copy of the folder `good` with other `files`."""
    with scratch() as folder:
        copy = copy_of(good, folder)
        for name, content in files.items():
            (copy / name).parent.mkdir(exist_ok=True)
            put(copy / name, content)
        endure(label, folder, lambda: function(copy))


def json_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


sizes = st.sampled_from(
    [
        *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
        *("vocab_size", "max_position_embeddings", "type_vocab_size"),
    ]
)
numbers = st.sampled_from([1, 3, 5, 16, 10**5, 10**6, 10**9, 10**12, 2**31, 2**63, 10**30]) | st.integers()


@fuzzed
@example(content=json.dumps(json_of(good_model() / "config.json") | {"num_hidden_layers": 10**9}).encode())
@given(
    place(json_files(json_of(good_model() / "config.json")))
    | st.dictionaries(sizes, numbers, min_size=1, max_size=3).map(
        lambda changes: json.dumps(json_of(good_model() / "config.json") | changes).encode()
    )
)
def test_config_json(content: bytes | None) -> None:
    use(good_model(), {"config.json": content}, "model config.json", use_model)


@fuzzed
@example(kind="classification", changes={"id2label": None, "num_labels": 10**12})
@given(
    st.sampled_from(list(SETTINGS)),
    st.dictionaries(
        st.sampled_from(
            ["id2label", "num_labels", "problem_type", "architectures", "label2id", "bertcli_task"]
        ),
        st.sampled_from(JUNK) | st.just("absent"),
        max_size=3,
    ),
)
def test_config_json_of_a_task(kind: str, changes: dict[str, Any]) -> None:
    config = json_of(good_task(kind) / "config.json") | changes
    config = {key: value for key, value in config.items() if value != "absent"}
    use(good_task(kind), {"config.json": as_json(config).encode()}, "model of a task", use_task)


@fuzzed
@given(st.sampled_from(list(SETTINGS)), st.data())
def test_settings_of_a_task(kind: str, data: st.DataObject) -> None:
    content = data.draw(json_files(json_of(good_task(kind) / "config.json")))
    use(good_task(kind), {"config.json": content}, "model of a task", use_task)


def safetensors_header() -> tuple[dict[str, Any], bytes]:
    raw = (good_model() / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def with_header(tree: Any, values: bytes, size: int | None = None) -> bytes:
    header = as_json(tree).encode()
    return struct.pack("<Q", len(header) if size is None else size) + header + values


@fuzzed
@given(
    damaged((good_model() / "model.safetensors").read_bytes())
    | mutated(safetensors_header()[0]).map(lambda tree: with_header(tree, safetensors_header()[1]))
    | st.sampled_from([0, 1, 2**31, 2**63, 2**64 - 1]).map(lambda size: with_header({}, b"", size))
)
def test_safetensors(content: bytes) -> None:
    use(good_model(), {"model.safetensors": content}, "model safetensors", use_model)


DTYPES = [value for value in vars(torch).values() if isinstance(value, torch.dtype)]


def odd_weights(weights: dict[str, torch.Tensor], name: str, dtype: torch.dtype, shape: list[int]) -> bytes:
    odd = torch.zeros(shape, dtype=torch.uint8)
    with suppress(RuntimeError, NotImplementedError, TypeError):  # uint8 if it cannot be converted
        odd = odd.to(dtype)
    file = io.BytesIO()
    try:
        torch.save(weights | {name: odd}, file)
    except KeyError:  # a type that torch does not save
        reject()
    return file.getvalue()


@fuzzed
@given(
    st.sampled_from(sorted(load_file(good_model() / "model.safetensors")))
    | st.sampled_from(
        ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "x", "classifier.weight"]
    ),
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 40), max_size=3) | st.sampled_from([[15], [15, 15], [37, 15], [37], [2, 15]]),
)
def test_weights_of_odd_types_and_shapes(name: str, dtype: torch.dtype, shape: list[int]) -> None:
    weights = load_file(good_model() / "model.safetensors")
    with scratch() as folder:
        copy = copy_of(good_model(), folder)
        (copy / "model.safetensors").unlink()
        (copy / "pytorch_model.bin").write_bytes(odd_weights(weights, name, dtype, shape))
        endure("model weights", folder, lambda: use_model(copy))
        try:
            save_file(torch.load(copy / "pytorch_model.bin", weights_only=True), copy / "model.safetensors")
        except Exception:  # a type that safetensors does not hold
            return
        (copy / "pytorch_model.bin").unlink()
        endure("model weights", folder, lambda: use_model(copy))


class Code:
    """What a pickle would run when it is loaded."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]):
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.arguments


PICKLED = (
    *(Code(os.system, ("touch owned",)), Code(exec, ("open('owned', 'w')",)), Code(eval, ("1",))),
    *(
        Code(open, ("owned", "w")),
        Code(getattr, ("x", "upper")),
        Code(bytearray, (10**12,)),
        Code(print, ("x",)),
    ),
    *([], None, 7, "x", {1: torch.zeros(1)}, {"a": 1}, {"a": [torch.zeros(2)]}, {}),
    torch.nn.Linear(2, 2),
    torch.zeros(3),
)


def pickled(value: Any, legacy: bool) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=not legacy)
    return file.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


WEIGHTS = load_file(good_model() / "model.safetensors")
small = {name: WEIGHTS[name] for name in sorted(WEIGHTS)[:2]}


@fuzzed
@given(
    st.sampled_from(PICKLED).flatmap(lambda value: st.booleans().map(lambda legacy: pickled(value, legacy)))
    | st.sampled_from(PICKLED).map(lambda value: pickle.dumps(value))
    | damaged(pickled(small, legacy=True))
    | damaged(pickled(small, legacy=False))
    | damaged(pickle.dumps(Code(os.system, ("touch owned",)), protocol=2))
    | st.sampled_from(["archive/data.pkl", "../owned", "constants.pkl"]).map(
        lambda name: zipped(name, b"\x80\x02}.")
    )
    | st.binary(max_size=60)
)
def test_pickles_run_nothing(content: bytes) -> None:
    with scratch() as folder:
        copy = copy_of(good_model(), folder)
        (copy / "model.safetensors").unlink()
        (copy / "pytorch_model.bin").write_bytes(content)
        endure("model pickle", folder, lambda: use_model(copy))
        assert not [path for path in (folder / "owned", copy / "owned", Path("owned")) if path.exists()]


INDEX = {"metadata": {}, "weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}


@fuzzed
@example(content=json.dumps({"weight_map": {"a": "../../../etc/passwd", "b": "\0"}}).encode())
@given(place(json_files(INDEX)))
def test_an_index_of_weights(content: bytes | None) -> None:
    with scratch() as folder:
        copy = copy_of(good_model(), folder)
        (copy / "model.safetensors").rename(copy / "model-1-of-2.safetensors")
        save_file({"x": torch.zeros(1)}, copy / "model-2-of-2.safetensors")
        put(copy / "model.safetensors.index.json", content)
        endure("model index", folder, lambda: use_model(copy))


def use_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    tokenizer.encode_with_spans(["the cat sat. [MASK] é", ""])
    tokenizer.decode(tokenizer.encode("the dog"))
    tokenizer.save(folder / "again")
    assert Tokenizer.load(folder / "again").encode("the cat") == tokenizer.encode("the cat")


@fuzzed
@given(place(json_files(json_of(good_model() / "tokenizer.json"))))
def test_tokenizer_json(content: bytes | None) -> None:
    use(good_model(), {"tokenizer.json": content}, "model tokenizer.json", use_tokenizer)


@fuzzed
@given(
    place(damaged((good_model() / "vocab.txt").read_bytes()) | st.binary(max_size=80)),
    place(json_files(json_of(good_model() / "tokenizer_config.json"))),
)
def test_vocab_txt(content: bytes | None, config: bytes | None) -> None:
    with scratch() as folder:
        copy = copy_of(good_model(), folder)
        (copy / "tokenizer.json").unlink()
        put(copy / "vocab.txt", content)
        put(copy / "tokenizer_config.json", config)
        endure("model vocab.txt", folder, lambda: use_tokenizer(copy))


MODULES = [
    {"type": f"sentence_transformers.models.{kind}", "path": path}
    for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"))
]
POOLING = {"word_embedding_dimension": 15, "pooling_mode": "mean", "pooling_mode_cls_token": False}
SENTENCE = {"max_seq_length": 19, "do_lower_case": False, "default_prompt_name": None}


@fuzzed
@given(json_files(MODULES), json_files(POOLING), json_files(SENTENCE))
def test_a_sentence_transformers_folder(modules: bytes, pooling: bytes, sentence: bytes) -> None:
    good = json.dumps(MODULES).encode()
    for files in (
        {"modules.json": modules},
        {"modules.json": good, "1_Pooling/config.json": pooling},
        {"modules.json": good, "1_Pooling/config.json": json.dumps(POOLING).encode()}
        | {"sentence_bert_config.json": sentence, "config_sentence_transformers.json": sentence},
    ):
        use(good_model(), files, "model of sentences", use_model)
