"""Python gives what the command line prints, and loads nothing heavy before it is asked."""

from __future__ import annotations

import json
import linecache
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from queue import Empty
from types import FrameType
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

import bertcli
from bertcli.system.signals import said_on_ctrl_c, stop_signal
from tests.finetunes import spam_config, spam_files
from tests.folders.folders import saved_model
from tests.small_runs import small_config, write_config, write_corpus

Bertcli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    saved_model(folder)
    return folder


def printed(run_bertcli: Bertcli, *arguments: object) -> list[dict[str, Any]]:
    code, out, _ = run_bertcli(*arguments, "--json")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def as_printed(result: object) -> Any:
    return json.loads(json.dumps(result))


def test_the_import_loads_nothing_heavy() -> None:
    program = (
        "import sys, bertcli\n"
        "heavy = {'torch', 'numpy', 'tokenizers', 'typer', 'yaml', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert callable(bertcli.load)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_masks_as_on_the_command_line(run_bertcli: Bertcli, folder: Path) -> None:
    texts = ["The [MASK] sat.", "A [MASK] and a [MASK]."]
    answers = bertcli.load(folder).fill_mask(texts, top_k=3)
    assert as_printed(answers) == printed(run_bertcli, "predict-mask", folder, *texts, "--top-k", 3)
    assert [len(answer["masks"]) for answer in answers] == [1, 2]


def test_one_text_is_a_list_of_one(folder: Path) -> None:
    model = bertcli.load(folder)
    assert model.fill_mask("A [MASK].") == model.fill_mask(["A [MASK]."])
    assert model.fill_mask([]) == []
    assert model.embed([]).shape == (0, model.embed("A cat.").shape[1])


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("multi-label", "The cat."),
        ("classification", ("The cat.", "A dog.")),
        ("regression", ("The cat.", "A dog.")),
        ("tokens", "The cat sat."),
        ("questions", ("Who sat?", "The cat sat.")),
        ("choices", ("It was", "dark", "he")),
    ],
)
def test_answers_as_on_the_command_line(
    run_bertcli: Bertcli, models: Path, kind: str, row: str | tuple[str, ...]
) -> None:
    (answer,) = bertcli.load(models / kind).predict([row])
    texts = [row] if isinstance(row, str) else row
    assert [as_printed(answer)] == printed(run_bertcli, "predict", models / kind, *texts)


def test_vectors_as_on_the_command_line(run_bertcli: Bertcli, folder: Path) -> None:
    texts = ["The cat sat on it.", "A dog."]
    vectors = bertcli.load(folder).embed(texts, normalize=True)
    lines = printed(run_bertcli, "embed", folder, *texts, "--normalize")
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, np.array([line["vector"] for line in lines], dtype=np.float32))


def test_attention_as_on_the_command_line(run_bertcli: Bertcli, folder: Path) -> None:
    found = bertcli.load(folder).attention("The cat sat.")
    assert [as_printed(found)] == printed(run_bertcli, "attention", folder, "The cat sat.")


def test_a_string_is_a_text_also_where_the_command_line_would_read_it(
    folder: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cat").write_text("a dog\n")
    for text in ("-", "cat", ""):
        assert bertcli.load(folder).attention(text)["texts"] == (text,)
        assert bertcli.load(models / "multi-label").attention(text)["texts"] == (text,)
        assert len(bertcli.load(models / "multi-label").predict(text)) == 1
        assert bertcli.load(folder).embed(text).shape[0] == 1


def test_a_model_of_vectors_embeds_and_predicts_nothing(models: Path) -> None:
    model = bertcli.load(models / "vectors")
    assert model.embed("The cat.").shape == (1, 15)
    assert model.attention("The cat.")["texts"] == ("The cat.",)
    for row in ("The cat.", ("The cat.", "A dog.")):
        with pytest.raises(bertcli.UserError, match="its answers are vectors: give it to bertcli embed"):
            model.predict([row])


def test_wrong_input_is_a_user_error(models: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(bertcli.UserError, match="no such folder"):
        bertcli.load(tmp_path / "nowhere")
    with pytest.raises(bertcli.UserError, match=r"row 2: .* a pair of texts, as a tuple; found 1"):
        bertcli.load(models / "classification").predict([("a", "b"), "alone"])
    with pytest.raises(bertcli.UserError, match="row 1: the model reads a text; found 2"):
        bertcli.load(models / "multi-label").predict([("a", "b")])
    with pytest.raises(bertcli.UserError, match="the row: the model reads a text; found 3"):
        bertcli.load(folder).attention(("a", "b", "c"))
    with pytest.raises(bertcli.UserError, match="the config: 2 problems in the config:"):
        bertcli.pretrain({"output_dir": str(tmp_path / "run"), "corpse": {}})
    with pytest.raises(bertcli.UserError, match="no such config file"):
        bertcli.finetune(tmp_path / "nowhere.yaml")
    assert bertcli.load(folder).embed("still usable").shape[0] == 1


TEXT, PATH = "A [MASK].", "x" * 5_000
CASES: dict[str, Callable[[Path, Path], Any]] = {
    "load": lambda models, folder: bertcli.load(folder),
    "fill_mask": lambda models, folder: bertcli.load(folder).fill_mask(TEXT),
    "predict": lambda models, folder: bertcli.load(models / "multi-label").predict(TEXT),
    "embed": lambda models, folder: bertcli.load(folder).embed(TEXT),
    "attention": lambda models, folder: bertcli.load(folder).attention(TEXT),
}
api: Any = bertcli  # whose arguments are wrong by intent
WRONG: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "model: None": (lambda _, f: api.load(None), "model: expected a path; got None"),
    "model: number": (lambda _, f: api.load(5), "model: expected a path; got an object of type int"),
    "model: bytes": (lambda _, f: api.load(b"runs"), "model: expected a path"),
    "model: empty": (lambda _, f: api.load(""), "model: '' cannot be used as a path: it is empty"),
    "model: long": (lambda _, f: api.load(PATH), "model: 'x.*file name too long"),
    "model: nul": (lambda _, f: api.load("a\0b"), "model: .*null"),
    "model: surrogate": (lambda _, f: api.load("a\ud800"), "model: "),
    "device: number": (lambda _, f: api.load(f, device=0), "device: expected a text"),
    "device: unknown": (lambda _, f: api.load(f, device="tpu"), "device: 'tpu'"),
    "device: surrogate": (lambda _, f: api.load(f, device="\ud800"), "device: .*surrogate"),
    "precision: fp8": (lambda _, f: api.load(f, precision="fp8"), "precision: expected 'fp32', 'bf16'"),
    "precision: None": (lambda _, f: api.load(f, precision=None), "precision: expected"),
    "top_k: 0": (lambda _, f: api.load(f).fill_mask(TEXT, 0), "top_k: expected a whole number"),
    "top_k: true": (lambda _, f: api.load(f).fill_mask(TEXT, True), "top_k: .*got True"),
    "top_k: half": (lambda _, f: api.load(f).fill_mask(TEXT, 1.5), "top_k: .*got 1.5"),
    "top_k: huge": (lambda _, f: api.load(f).fill_mask(TEXT, 2**70), "top-k .*the vocabulary"),
    "fill: None": (lambda _, f: api.load(f).fill_mask(None), "texts: expected a text, or a list"),
    "fill: surrogate": (lambda _, f: api.load(f).fill_mask([TEXT, "\ud800"]), "text 2: character 1 "),
    "pooling: case": (lambda _, f: api.load(f).embed(TEXT, "MEAN"), "pooling: expected None, 'mean'"),
    "pooling: name": (lambda _, f: api.load(f).embed(TEXT, "avg"), "pooling: .*got 'avg'"),
    "pooling: number": (lambda _, f: api.load(f).embed(TEXT, 5), "pooling: .*got 5"),
    "normalize: text": (lambda _, f: api.load(f).embed(TEXT, normalize="no"), "normalize: .*got 'no'"),
    "normalize: one": (lambda _, f: api.load(f).embed(TEXT, normalize=1), "normalize: .*got 1"),
    "embed: surrogate": (lambda _, f: api.load(f).embed("ab\ud800"), "text 1: character 3 "),
    "embed: keys": (lambda _, f: api.load(f).embed({"a": "b"}), "texts: .*type dict"),
    "embed: no order": (lambda _, f: api.load(f).embed({"a", "b"}), "texts: .*type set"),
    "embed: bytes": (lambda _, f: api.load(f).embed(b"ab"), "texts: .*type bytes"),
    "embed: a frame": (lambda _, f: api.load(f).embed(Mock(columns=["a"])), "texts: .*type Mock"),
    "embed: numbers": (lambda _, f: api.load(f).embed([TEXT, float("nan")]), "text 2: .*type float"),
    "predict: None": (lambda m, _: api.load(m / "multi-label").predict([None]), "row 1: .*got None"),
    "predict: in row": (lambda m, _: api.load(m / "choices").predict([("a", "b", 3)]), "row 1, text 3: "),
    "predict: keys": (lambda m, _: api.load(m / "multi-label").predict([{"text": "a"}]), "row 1: .*dict"),
    "predict: pair": (
        lambda m, _: api.load(m / "classification").predict("\ud800"),
        "row 1: character 1",
    ),
    "attention: None": (lambda _, f: api.load(f).attention(None), "text: expected a text"),
    "attention: bytes": (lambda _, f: api.load(f).attention(b"a"), "text: .*type bytes"),
    "attention: surrogate": (lambda _, f: api.load(f).attention(("a", "\udfff")), "text, text 2: "),
    "config: None": (lambda _, f: api.pretrain(None), "config: expected a path; got None"),
    "config: list": (lambda _, f: api.finetune([]), "config: expected a path"),
    "config: long": (lambda _, f: api.pretrain(PATH), "config: .*file name too long"),
    "config: keys": (lambda _, f: api.pretrain({1: 2}), "the config: "),
    "config: surrogate": (lambda _, f: api.finetune({"output_dir": "\ud800"}), "the config: "),
    "config: no user": (
        lambda _, f: api.pretrain({"output_dir": "~nobody-here/x", "corpus": {}}),
        "output_dir: '~nobody-here/x' begins with ~ and a name, and no user has this name",
    ),
    "config: half": (
        lambda _, f: api.pretrain({"output_dir": "\ud800", "corpus": {}}),
        "output_dir: .*surrogate pair",
    ),
    "config: nul": (lambda _, f: api.pretrain({"output_dir": "a\0b", "corpus": {}}), "output_dir: .*NUL"),
    "resume": (lambda _, f: api.pretrain({}, resume="no"), "resume: expected False or True; got 'no'"),
    "overwrite": (lambda _, f: api.finetune({}, overwrite=1), "overwrite: .*got 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named(models: Path, folder: Path, name: str) -> None:
    wrong, message = WRONG[name]
    with pytest.raises(bertcli.UserError, match=f"(?s)^{message}|{message}"):
        wrong(models, folder)


FUNCTIONS: dict[str, Callable[[Path, Path, Any], Any]] = {
    "load": lambda _, f, wrong: api.load(wrong),
    "load: device": lambda _, f, wrong: api.load(f, device=wrong),
    "load: precision": lambda _, f, wrong: api.load(f, precision=wrong),
    "fill_mask": lambda _, f, wrong: api.load(f).fill_mask(wrong),
    "fill_mask: top_k": lambda _, f, wrong: api.load(f).fill_mask(TEXT, wrong),
    "embed": lambda _, f, wrong: api.load(f).embed(wrong),
    "embed: in list": lambda _, f, wrong: api.load(f).embed([wrong]),
    "embed: pooling": lambda _, f, wrong: api.load(f).embed(TEXT, wrong if wrong is not None else 1),
    "embed: normalize": lambda _, f, wrong: api.load(f).embed(TEXT, normalize=wrong or 1),
    "predict": lambda m, _, wrong: api.load(m / "tokens").predict(wrong),
    "predict: row": lambda m, _, wrong: api.load(m / "multi-label").predict([wrong]),
    "predict: in row": lambda m, _, wrong: api.load(m / "choices").predict([(wrong, "a", "b")]),
    "attention": lambda _, f, wrong: api.load(f).attention(wrong),
    "pretrain": lambda _, f, wrong: api.pretrain(wrong),
    "pretrain: output_dir": lambda _, f, wrong: api.pretrain({"output_dir": wrong, "corpus": {"files": "x"}}),
    "pretrain: corpus": lambda _, f, wrong: api.pretrain({"output_dir": "run", "corpus": {"files": wrong}}),
    "finetune": lambda _, f, wrong: api.finetune(wrong),
    "finetune: model": lambda _, f, wrong: api.finetune(TASK | {"model": wrong}),
    "finetune: train": lambda _, f, wrong: api.finetune(TASK | {"task": TASK["task"] | {"train": wrong}}),
}
TASK: dict[str, Any] = {
    **{"output_dir": "run", "model": "m"},
    "task": {"type": "classification", "train": "x", "text": "a", "label": "b"},
}
ITSELF: list[Any] = []
ITSELF.append(ITSELF)
OBJECTS: list[Any] = [
    *(None, 0, -1, 1.5, float("nan"), 1j, b"a", bytearray(b"a"), memoryview(b"a"), object(), str, len),
    *({"a": 1}, {"a"}, [None], [[]], [[["a"]]], ITSELF, "\ud800", Exception("a"), torch.tensor(1.5)),
    *(
        np.array("a"),
        np.array(0),
        np.array([1.5]),
        np.float32(1),
        np.bool_(True),
        range(3),
        Mock(columns=["a"]),
    ),
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_object_of_another_kind_is_a_user_error(
    models: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in [*OBJECTS, (None for _ in "a")]:
        with pytest.raises(bertcli.UserError):
            FUNCTIONS[name](models, folder, wrong)
    assert not list(tmp_path.iterdir())


def state() -> dict[str, Any]:
    """All that a call must leave as it was."""
    deterministic: Any = torch.utils.deterministic  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "threads": torch.get_num_threads(),
        "generator": torch.get_rng_state().tolist(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "only warns": torch.is_deterministic_algorithms_warn_only_enabled(),
        "filled": deterministic.fill_uninitialized_memory,
        "dtype": torch.get_default_dtype(),
        "filters": list(warnings.filters),
        "environment": dict(os.environ),
        "streams": (sys.stdout, sys.stderr),
    }


def disturb(*_: object, **__: object) -> None:
    """What training may leave behind, on other devices too."""
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_default_dtype(torch.float64)
    warnings.simplefilter("ignore")
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def own_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", CASES)
def test_a_call_leaves_all_as_it_was(models: Path, folder: Path, own_ctrl_c: None, name: str) -> None:
    before = state()
    CASES[name](models, folder)
    assert state() == before


@pytest.mark.parametrize(
    "error", [None, bertcli.UserError("no"), KeyboardInterrupt(), MemoryError(), SystemExit(3)]
)
@pytest.mark.parametrize("call", [bertcli.pretrain, bertcli.finetune])
def test_training_leaves_all_as_it_was(
    monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None, call: Callable[..., Any], error: BaseException | None
) -> None:
    def train(*_: object, **__: object) -> dict[str, Any]:
        disturb()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if error is not None:
            raise error
        return {}

    monkeypatch.setattr(f"bertcli.training.train.run_{call.__name__.removesuffix('e')}ing", train)
    before = state()
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else bertcli.UserError
    with nullcontext() if error is None else pytest.raises(expected):
        call({})
    assert state() == before


def test_ctrl_c_at_any_line_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None) -> None:
    monkeypatch.setattr("bertcli.training.train.run_pretraining", disturb)
    before, ended, moment = state(), 0, 0
    for moment in range(1, 1_000):
        lines = iter(range(moment, -1, -1))

        def trace(frame: FrameType, event: str, _: object, lines: Iterator[int] = lines) -> Any:
            if "/bertcli/" not in frame.f_code.co_filename:
                return None
            if linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() == "guard.holds = True":
                return trace  # Python calls no handler before it: the block begins with it
            if event == "line" and next(lines, None) == 0:
                signal.raise_signal(signal.SIGINT)
            return trace

        interrupted = False
        sys.settrace(trace)
        try:
            bertcli.pretrain({})
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        assert state() == before, f"Ctrl-C at line event {moment}"
        ended += not interrupted
        if next(lines, None) is not None:
            break
    assert ended == 1
    assert moment > 60


def test_a_second_ctrl_c_does_not_end_the_callers_process(
    monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None, tmp_path: Path
) -> None:
    def train(*_: object) -> None:
        with said_on_ctrl_c(lambda: "stopped"):
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                with stop_signal(lambda: "lost"):
                    signal.raise_signal(signal.SIGINT)
                    signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("bertcli.training.train.run_pretraining", lambda *_, **__: train())
    before = state()
    with pytest.raises(KeyboardInterrupt):
        bertcli.pretrain({})
    assert state() == before


def test_ctrl_c_before_training_leaves_the_next_one_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None
) -> None:
    config = small_config(write_corpus(tmp_path / "corpus.txt"), tmp_path / "run")
    monkeypatch.setattr("bertcli.training.pretraining._build", Mock(side_effect=KeyboardInterrupt))
    before = state()
    with pytest.raises(KeyboardInterrupt):
        bertcli.pretrain(config)
    assert state() == before


def test_closed_streams_stay_closed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", None)
        patch.setattr("sys.stdout", None)
        with pytest.raises(bertcli.UserError):
            bertcli.load(folder).fill_mask("no mask")
        assert (sys.stdout, sys.stderr) == (None, None)


class PanicException(BaseException):
    """As pyo3 names it, in no module."""


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (PanicException("index out of bounds"), bertcli.UserError),
        (Exception("tokenizers raises it bare"), bertcli.UserError),
        (SafetensorError("damaged"), bertcli.UserError),
        (FileNotFoundError(2, "No such file", "x"), bertcli.UserError),
        (torch.OutOfMemoryError("out of memory"), bertcli.UserError),
        (RuntimeError("a bug"), RuntimeError),
        (TypeError("a bug"), TypeError),
        (Empty(), Empty),
    ],
)
def test_no_error_of_another_library_comes_out(
    monkeypatch: pytest.MonkeyPatch, folder: Path, raised: BaseException, expected: type[BaseException]
) -> None:
    monkeypatch.setattr("bertcli.inference.fill_mask.fill_masks", Mock(side_effect=raised))
    with pytest.raises(expected) as caught:
        bertcli.load(folder).fill_mask(TEXT)
    assert type(caught.value) is expected


def test_another_ranks_error_is_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, error in ((2, bertcli.UserError), (128 + 15, KeyboardInterrupt)):
        monkeypatch.setattr("bertcli.training.train.run_finetuning", Mock(side_effect=SystemExit(code)))
        with pytest.raises(error):
            bertcli.finetune({})


def test_a_run_from_text_to_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = write_corpus(tmp_path / "corpus.txt")
    config = small_config(corpus, tmp_path / "run", training={"steps": 2}, evaluation={"batches": 1})
    done = bertcli.pretrain(config)
    assert done == {"model": str(tmp_path / "run" / "model")}
    (answer,) = bertcli.load(tmp_path / "run").fill_mask("The [MASK] was dark.")
    assert answer["filled"]
    assert capsys.readouterr().out == ""
    assert bertcli.pretrain(write_config(tmp_path / "config.yaml", config), resume=True) == done


def test_ctrl_c_saves_a_checkpoint_and_a_resume_ends_as_the_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "corpus.txt")
    keys: dict[str, Any] = {"training": {"steps": 6}, "evaluation": {"batches": 1}}
    whole, stopped = (small_config(corpus, tmp_path / name, **keys) for name in ("whole", "stopped"))
    bertcli.pretrain(whole)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    optimizer_step, steps = torch.optim.AdamW.step, iter(range(1, 7))

    def step(self: torch.optim.AdamW, *arguments: Any) -> Any:
        if next(steps) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return optimizer_step(self, *arguments)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(torch.optim.AdamW, "step", step)
            with pytest.raises(KeyboardInterrupt):
                bertcli.pretrain(stopped)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (tmp_path / "stopped" / "model").exists()
    done = bertcli.pretrain(stopped, resume=True)
    assert done == {"model": str(tmp_path / "stopped" / "model")}
    files = (tmp_path / name / "model" / "model.safetensors" for name in ("whole", "stopped"))
    assert len({file.read_bytes() for file in files}) == 1


def test_labels_are_learned_in_a_thread_too(tmp_path: Path) -> None:
    config = spam_config(spam_files(tmp_path), training={"epochs": 0.1})
    results: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: results.append(bertcli.finetune(config)))
    thread.start()
    thread.join()
    (done,) = results
    assert done["model"] == str(tmp_path / "run" / "model")
    assert 0 <= done["accuracy"] <= 1
    assert done["verdict"]


@pytest.mark.parametrize("verb", ["finetune", "pretrain"])
def test_a_second_run_in_another_thread_is_refused(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would draw their dropout from torch's one generator."""
    from bertcli.training import train as training

    said: list[str] = []
    if verb == "finetune":
        config = spam_config(spam_files(tmp_path), training={"epochs": 0.3})
    else:
        text = write_corpus(tmp_path / "corpus.txt")
        config = small_config(text, tmp_path / "run", training={"steps": 2, "warmup_steps": 0})
    train, begin = getattr(bertcli, verb), getattr(training, verb)

    def second() -> None:
        try:
            train(config | {"output_dir": str(tmp_path / "other")})
        except bertcli.UserError as error:
            said.append(str(error))

    def first(*arguments: Any) -> Any:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        return begin(*arguments)

    monkeypatch.setattr(training, verb, first)
    train(config)
    assert len(said) == 1
    assert "another run is training in this process" in said[0]
    assert not (tmp_path / "other").exists()
    monkeypatch.undo()
    train(config | {"output_dir": str(tmp_path / "other")})
    weights = [(tmp_path / run / "model/model.safetensors").read_bytes() for run in ("run", "other")]
    assert weights[0] == weights[1]
