"""What a store, a run and a checkpoint say of themselves, with junk in it: used rightly, or one message."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from bertcli.batches.share import BatchSizes
from bertcli.batches.stream import BatchStream
from bertcli.config.load import save_config
from bertcli.config.run import with_values
from bertcli.corpus.begin import JOURNAL, Journal, read_journal, write_journal
from bertcli.corpus.token_store import open_store
from bertcli.corpus.writer import BuildProgress
from bertcli.folders.run_layout import RunLayout
from bertcli.folders.sealed import seal
from bertcli.reports.build import build_report, read_runs
from bertcli.reports.page import ReportOptions
from bertcli.training.best import BestModel
from bertcli.training.checkpoint import newest_checkpoint
from bertcli.training.metrics_log import cut_back, read_metrics
from tests.decided import data_config
from tests.finetunes import checked, spam_config
from tests.fuzz.good import copy_of, good_store, store_config
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import as_json, damaged, fuzzed, json_files, mutated, place, put

MANIFEST = json.loads((good_store() / "manifest.json").read_text())
ARRAYS = sorted(MANIFEST["arrays"])


def draw_batches(folder: Path) -> None:
    store = open_store(folder)
    for objective in ("mlm", "mlm+nsp"):
        BatchStream(
            store.train, store.tokenizer, data_config(objective=objective, max_length=16), 0, BatchSizes(4)
        )[3]
    assert f"{store.manifest.unk_rate:.3f} {store.manifest.tokens_per_word:.3f}"


@fuzzed
@example(content=json.dumps(MANIFEST | {"arrays": {}}).encode())
@example(content=json.dumps(MANIFEST | {"arrays": {"../../outside": 10**12}}).encode())
@given(place(json_files(MANIFEST)))
def test_the_manifest_of_a_store(content: bytes | None) -> None:
    with scratch() as folder:
        copy = copy_of(good_store(), folder)
        put(copy / "manifest.json", content) if content is not None else (copy / "manifest.json").unlink()
        endure("manifest of a store", folder, lambda: draw_batches(copy))


@fuzzed
@given(st.sampled_from(ARRAYS), st.data())
def test_the_arrays_of_a_store(name: str, data: st.DataObject) -> None:
    with scratch() as folder:
        copy = copy_of(good_store(), folder)
        (copy / name).write_bytes(data.draw(damaged((copy / name).read_bytes())))
        endure("arrays of a store", folder, lambda: draw_batches(copy))


@fuzzed
@given(st.data())
def test_the_journal_of_a_build(data: st.DataObject) -> None:
    """A damaged journal begins the build anew: the store is the same, whatever it says."""
    with scratch() as folder:
        copy = copy_of(good_store(), folder)
        key = {"options": {"corpus.files": ["a"]}}
        write_journal(copy, Journal(key, BuildProgress.begin(1)))
        good = (copy / JOURNAL).read_bytes()
        (copy / JOURNAL).write_bytes(data.draw(damaged(good) | json_files(json.loads(good))))
        journal = endure("journal of a build", folder, lambda: read_journal(copy, key))
        assert journal is None or journal == Journal(key, BuildProgress.begin(1))


def write_checkpoint(folder: Path, step: int) -> Path:
    """Files of any content, and the manifest that names them."""
    checkpoint = folder / f"step-{step:08d}"
    checkpoint.mkdir(parents=True)
    for name in ("state.json", "optimizer.safetensors"):
        (checkpoint / name).write_text(json.dumps({"step": step, "name": name}))
    seal(checkpoint, checkpoint.name)
    return checkpoint


@fuzzed
@example(name="manifest.json", content=b"[" * 100_000)
@given(
    st.sampled_from(["manifest.json", "state.json", "optimizer.safetensors"]),
    st.binary(max_size=50)
    | json_files(
        {"state.json": {"blake2b": "0" * 128, "bytes": 30}, "../../outside": {"blake2b": "", "bytes": 1}}
    ),
)
def test_a_checkpoint(name: str, content: bytes) -> None:
    """Whatever stands in one file of the newest one, the one before is found."""
    with scratch() as folder:
        good, bad = write_checkpoint(folder / "checkpoints", 5), write_checkpoint(folder / "checkpoints", 10)
        (bad / name).write_bytes(content)
        said: list[str] = []
        found = endure("checkpoint", folder, lambda: newest_checkpoint(RunLayout(folder), said.append))
        assert found == good
        assert len(said) == 1


ROWS = [
    {"step": step, "split": split, "loss": 0.5, "accuracy": None}
    for step in (1, 2)
    for split in ("train", "heldout")
]


@fuzzed
@given(
    damaged("".join(json.dumps(row) + "\n" for row in ROWS).encode())
    | st.lists(json_files(ROWS[0]), max_size=3).map(b"\n".join)
)
def test_the_metrics_of_a_run(content: bytes) -> None:
    with scratch() as folder:
        (folder / "metrics.jsonl").write_bytes(content)

        def go_on() -> None:
            rows = cut_back(folder / "metrics.jsonl", 1, 1, lambda line: None)
            BestModel(RunLayout(folder), "loss", 2).read(rows)
            assert all(row["step"] <= 1 for row in read_metrics(folder / "metrics.jsonl"))

        endure("metrics of a run", folder, go_on)


ROWS = [
    {"step": 1, "epoch": 0.5, "split": "train", "loss": 2.5, "mlm_loss": 2.5, "mlm_accuracy": 0.25}
    | {"learning_rate": 1e-4, "grad_norm": 1.5, "tokens": 64, "tokens_per_second": 9.5, "seconds": 0.5}
    | {"skipped_steps": 0},
    {"step": 2, "split": "heldout", "loss": None, "mlm_loss": 3, "mlm_accuracy": 0.0, "tokens": 128}
    | {"seconds": 1.0, "f1": 0.5, "positive_label": "spam"},
]
TIED = ROWS[1] | {"loss": 1.0, "accuracy": 0.5}
VERDICT = {"step": 2, "lines": ["It learned.", "More."], "baseline": {"accuracy": 0.5}}


def as_rows(tree: object) -> bytes:
    return "".join(f"{as_json(row)}\n" for row in (tree if isinstance(tree, list) else [tree])).encode()


@fuzzed
@example(metrics=as_rows([ROWS[0] | {"loss": "high"}]), verdict=as_json(VERDICT).encode())
@example(metrics=as_rows([ROWS[0] | {"epoch": 1e-300}, ROWS[1]]), verdict=None)
@example(metrics=as_rows([ROWS[0] | {"step": 10**30}]), verdict=None)
@example(metrics=as_rows([ROWS[0] | {"skipped_steps": None}]), verdict=None)
@example(metrics=as_rows([ROWS[0] | {"mlm_loss": 1e308}, ROWS[0] | {"mlm_loss": -1e308}]), verdict=None)
@example(metrics=as_rows([ROWS[1] | {"split": "test"}, ROWS[1] | {"mlm_accuracy": [1]}]), verdict=None)
@example(metrics=as_rows(ROWS), verdict=as_json(VERDICT | {"lines": 7}).encode())
@example(metrics=as_rows(ROWS), verdict=as_json(VERDICT | {"lines": [{}]}).encode())
@example(metrics=as_rows(ROWS), verdict=as_json(VERDICT | {"baseline": {"accuracy": True}}).encode())
@example(metrics=as_rows([TIED, TIED | {"step": 3, "loss": -1e100, "f1": 1e100}]), verdict=None)
@given(
    mutated(ROWS).map(as_rows) | damaged(as_rows(ROWS)),
    st.none() | json_files(VERDICT),
)
def test_a_report_of_any_metrics_and_verdict(metrics: bytes, verdict: bytes | None) -> None:
    with scratch() as folder:
        asked = store_config(good_store().parent / "corpus.txt", folder)
        pretraining = with_values(asked, {"data": {"objective": "mlm+nsp"}})
        (folder / "metrics.jsonl").write_bytes(metrics)
        if verdict is not None:
            (folder / "verdict.json").write_bytes(verdict)
        for config in (pretraining, checked(spam_config(folder))):
            save_config(config, folder / "config.yaml")
            endure("report", folder, lambda: build_report(read_runs([folder]), ReportOptions()))
