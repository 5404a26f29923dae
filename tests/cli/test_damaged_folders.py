"""Damaged files of model folders: one message that names the file, and exit code 2."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sentencepiece import sentencepiece_model_pb2

from bertcli.corpus.token_store import open_store
from bertcli.system.errors import UserError
from tests.folders.folders import rewrite, saved_model
from tests.fuzz.good import good_store
from tests.small_runs import small_config
from tests.tokenizer.tokenizers_of import make_tokenizer_folder

Edit = Callable[[Path], object]
SPM = {"albert": "spiece.model", "deberta-v2": "spm.model"}


def values(name: str, change: Callable[[Any], object]) -> Edit:
    """Change the value of a JSON file in place."""

    def edit(folder: Path) -> None:
        path = folder / name
        value = json.loads(path.read_text(encoding="utf-8"))
        change(value)
        path.write_text(json.dumps(value), encoding="utf-8")

    return edit


def declared(**keys: Any) -> Edit:
    return values("tokenizer_config.json", lambda config: config.update(keys))


def vocabulary(token_id: Any) -> Edit:
    """Another id for the mask of a vocab.json."""
    return values("vocab.json", lambda pieces: pieces.update({"<mask>": token_id}))


def pipeline(part: str, **keys: Any) -> Edit:
    """Other keys in a part of a tokenizer.json."""
    return values("tokenizer.json", lambda whole: whole.update({part: (whole[part] or {}) | keys}))


def sentencepiece(change: Callable[[Any], object]) -> Edit:
    def edit(folder: Path) -> None:
        path = next(folder / name for name in SPM.values() if (folder / name).exists())
        model = sentencepiece_model_pb2.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]
        model.ParseFromString(path.read_bytes())
        change(model)
        path.write_bytes(model.SerializeToString())

    return edit


def charsmap(table: bytes) -> Edit:
    return sentencepiece(lambda model: setattr(model.normalizer_spec, "precompiled_charsmap", table))


def piece(**keys: Any) -> Edit:
    return sentencepiece(lambda model: [setattr(model.pieces[50], key, value) for key, value in keys.items()])


def units(numbers: list[int], texts: bytes = b"a\0") -> bytes:
    return struct.pack(f"<I{len(numbers)}I", 4 * len(numbers), *numbers) + texts


def fifo(name: str) -> Edit:
    def edit(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return edit


TWICE = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
TABLE: list[tuple[str, bool, Edit, str]] = [
    ("roberta", True, vocabulary(7), "vocab.json: expected pieces with their ids.*'<mask>' has 7"),
    ("roberta", True, vocabulary(10**12), "vocab.json: expected pieces.*has 1000000000000"),
    ("roberta", True, vocabulary(2**64), "vocab.json: expected pieces.*has 18446744073709551616"),
    ("roberta", True, vocabulary(-1), "vocab.json: expected pieces.*has -1"),
    ("roberta", True, vocabulary(True), "vocab.json: expected pieces.*has True"),
    ("roberta", True, vocabulary([1]), r"vocab.json: expected pieces.*has \[1\]"),
    ("roberta", True, values("vocab.json", lambda v: v.pop("Ġt")), "merges.txt: line .* not two pieces"),
    ("roberta", True, fifo("merges.txt"), "merges.txt: is no plain file"),
    ("roberta", True, declared(mask_token="<s>"), "mask_token and cls_token are both '<s>'"),
    ("roberta", True, declared(pad_token="<mask>"), "mask_token and pad_token are both '<mask>'"),
    (
        "roberta",
        False,
        values("tokenizer.json", lambda v: v["model"]["vocab"].update({"<mask>": 7})),
        "has 7",
    ),
    ("albert", True, charsmap(b"\1"), "spiece.model: its table of characters .* is damaged"),
    ("albert", True, charsmap(b"\xff\xff\xff\xff" + bytes(40)), "its table of characters .* is damaged"),
    ("albert", True, charsmap(units([0] * 256, b"\xff\xfe")), "its table of characters .* is damaged"),
    ("albert", True, charsmap(units([0] * (1 << 22))), "its table of characters .* is damaged"),
    ("albert", True, charsmap(struct.pack("<I", 7) + bytes(7)), "its table of characters .* is damaged"),
    ("albert", True, charsmap(units([0xFFFFFFFF] * 256)), "spiece.model: the tokenizers library failed"),
    ("albert", True, piece(score=float("nan")), "spiece.model: expected pieces with numbers .* has nan"),
    ("albert", True, piece(score=float("inf")), "spiece.model: expected pieces with numbers .* has inf"),
    (
        "albert",
        True,
        declared(tokenizer_class={"a": 1}),
        "tokenizer_config.json: the tokenizer is a {'a': 1}",
    ),
    ("deberta-v2", True, piece(piece="a" * 10**6), "spm.model: has a piece of 1,000,000 characters"),
    ("deberta-v2", True, fifo("spm.model"), "spm.model: is no plain file"),
    ("deberta-v2", False, pipeline("model", unk_id=None), "tokenizer.json: unk_id is missing"),
    ("deberta-v2", False, pipeline("model", unk_id=2**63), "tokenizer.json: not a tokenizer.json of"),
    (
        *("deberta-v2", False),
        pipeline("normalizer", type="Precompiled", precompiled_charsmap="A" * 2000),
        "tokenizer.json: its table of characters .* is damaged",
    ),
    (
        "deberta-v2",
        False,
        pipeline("normalizer", normalizers=[TWICE] * 3),
        "may make 1,000,000 characters of",
    ),
    ("deberta-v2", False, pipeline("decoder", type="Sequence", decoders=[TWICE] * 6), "its decoder may make"),
    (
        *("deberta-v2", False),
        pipeline("normalizer", normalizers=[{"type": "Prepend", "prepend": "a" * 10**5}]),
        "may make 100,000 characters of one",
    ),
    ("bert", False, declared(tokenizer_class=["x"]), r"tokenizer_config.json: the tokenizer is a \['x'\]"),
    ("bert", False, declared(mask_token="[CLS]"), r"mask_token is '\[CLS\]'; BERT's is \[MASK\]"),
    ("bert", False, declared(added_tokens_decoder=["x"]), "the tokens that it registers cannot be read"),
    ("bert", False, values("tokenizer.json", lambda v: v["model"]["vocab"].update(the=2**31)), "2147483648"),
    *(("bert", False, fifo(name), f"{name}: is no plain file") for name in ("tokenizer.json", "config.json")),
    *(("bert", False, fifo(f"{name}.json"), f"{name}.json: is no plain") for name in ("added_tokens",)),
]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Path]:
    """The folder of a model type, with a tokenizer.json or without."""
    root = tmp_path_factory.mktemp("good")

    def make(model_type: str, slow: bool) -> Path:
        folder = root / f"{model_type}-{slow}"
        return folder if folder.exists() else make_tokenizer_folder(model_type, folder, slow=slow)

    return make


@pytest.mark.parametrize(("model_type", "slow", "edit", "message"), TABLE)
def test_the_files_of_a_tokenizer(
    tmp_path, good, run_bertcli, model_type: str, slow: bool, edit: Edit, message: str
):
    folder = Path(shutil.copytree(good(model_type, slow), tmp_path / "model"))
    edit(folder)
    code, _, stderr = run_bertcli("tokenizer", "encode", "the cat é", "--tokenizer", folder)
    assert code == 2, stderr
    assert stderr.startswith(f"error: {folder}")
    assert len(stderr.splitlines()) == 1
    assert len(stderr) < 1000
    assert re.search(message, stderr), stderr


def too_large(good: Path, folder: Path) -> Path:
    """The model with finite weights whose sums overflow."""
    folder = Path(shutil.copytree(good, folder))
    rewrite(folder, lambda weights: {name: value * 1e37 for name, value in weights.items()})
    return folder


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        *((kind, ("predict", "the cat", "it ran")) for kind in ("classification", "regression")),
        ("choices", ("predict", "the cat", "it ran", "it sat")),
        *((kind, ("predict", "the cat", "--json")) for kind in ("multi-label", "tokens")),
        ("questions", ("predict", "the cat sat", "who")),
        *(("vectors", ("embed", "the cat", *more)) for more in ((), ("--normalize",))),
        ("vectors", ("similarity", "the cat", "it ran")),
        *(("mlm", ("predict-mask", "the [MASK] sat", *more)) for more in ((), ("--json",))),
        ("mlm", ("predict-next", "the cat", "it ran")),
        ("mlm", ("attention", "the cat")),
        ("mlm", ("evaluate", "--json", "--corpus")),
    ],
)
def test_answers_that_overflow(tmp_path, models, run_bertcli, kind: str, command: tuple[str, ...]):
    if kind == "mlm":
        saved_model(tmp_path / "good")
    (tmp_path / "text.txt").write_text("the cat sat. it ran.\n" * 3)
    folder = too_large(tmp_path / "good" if kind == "mlm" else models / kind, tmp_path / "large")
    more = [tmp_path / "text.txt"] if "--corpus" in command else []
    code, stdout, stderr = run_bertcli(command[0], folder, *command[1:], *more)
    assert (code, stdout) == (2, ""), (stdout, stderr)
    assert "the model's answer is NaN or infinite: its weights are too large" in stderr


@pytest.mark.parametrize("name", ["config.yaml", "metrics.jsonl", "verdict.json", ".bertcli.json"])
def test_pipes_in_a_run_folder(tmp_path, run_bertcli, name: str):
    run = tmp_path / "run"
    values = small_config(tmp_path / "text.txt", run)
    (tmp_path / "text.txt").write_text("the cat sat. it ran.\n" * 30)
    run.mkdir()
    (run / "config.yaml").write_text(yaml.safe_dump(values))
    (run / "metrics.jsonl").write_text("")
    fifo(name)(run)
    code, _, stderr = run_bertcli("pretrain" if name == ".bertcli.json" else "report", run)
    assert code == 2
    assert str(run) in stderr


@pytest.fixture
def impatient() -> Iterator[None]:
    """Raise where a pipe is waited for; a test would hang else."""

    def give_up(*_: object) -> None:
        raise AssertionError("waits for a writer")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "command",
    [
        *((name, "PIPE") for name in ("pretrain", "finetune", "check-data", "verify-resume")),
        *((name, "MODEL", "--input", "PIPE") for name in ("predict-mask", "predict-next", "embed")),
        ("similarity", "MODEL", "the cat", "--input", "TEXT", "--vectors", "PIPE"),
        ("tokenizer", "encode", "--tokenizer", "MODEL", "--input", "PIPE"),
        ("prepare", "CONFIG", "--set", "corpus.files=[PIPE]"),
    ],
)
def test_a_pipe_without_a_writer(tmp_path, models, run_bertcli, command: tuple[str, ...]):
    text, config, pipe = tmp_path / "text.txt", tmp_path / "config.yaml", tmp_path / "pipe"
    text.write_text("the cat sat.\n")
    config.write_text(yaml.safe_dump(small_config(text, tmp_path / "run")))
    os.mkfifo(pipe)
    places = {"PIPE": pipe, "MODEL": models / "vectors", "TEXT": text, "CONFIG": config}
    filled = [re.sub("|".join(places), lambda name: str(places[name[0]]), part) for part in command]
    code, _, stderr = run_bertcli(*filled)
    assert (code, stderr.count(f"error: {pipe}: is no plain file, but a pipe")) == (2, 1), stderr


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["manifest.json", "train/ids.bin", "heldout/pairs.bin", "hashes.bin"])
def test_pipes_in_a_store(tmp_path, name: str):
    folder = Path(shutil.copytree(good_store(), tmp_path / "store"))
    fifo(name)(folder)
    with pytest.raises(UserError, match=re.escape(name)):
        open_store(folder)


@pytest.mark.parametrize(
    "command",
    [
        ("tokenizer", "encode", "--tokenizer", "MODEL", "--input"),
        ("predict-mask", "MODEL", "--input"),
        ("check-data",),
    ],
)
def test_the_pipe_of_a_shell_is_read(tmp_path, run_bertcli, command: tuple[str, ...]):
    """It is what `<(...)` gives: it has no position, and can be read once."""
    (tmp_path / "text.txt").write_text("the cat sat.\n\nit ran.\n\n" * 30)
    config = yaml.safe_dump(small_config(tmp_path / "text.txt", tmp_path / "run"))
    if "MODEL" in command:
        saved_model(tmp_path / "model")
    reader, writer = os.pipe()
    os.write(writer, config.encode() if command == ("check-data",) else b"the [MASK] sat\n")
    os.close(writer)
    filled = [tmp_path / "model" if part == "MODEL" else part for part in command]
    code, stdout, stderr = run_bertcli(*filled, f"/dev/fd/{reader}")
    os.close(reader)
    assert (code == 2, bool(stdout)) == (False, True), stderr  # check-data: 1 for what is to be mended
