"""Whatever goes wrong under a run ends in a clear message, and what was saved leads to the same end."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.folders.mark import new_marked_folder
from bertcli.folders.run_layout import RunLayout
from bertcli.system.errors import UserError
from bertcli.training import pretraining
from bertcli.training.checkpoint import load_state
from bertcli.training.kills import differences
from bertcli.training.metrics_log import MetricsLog
from bertcli.training.pretraining import pretrain
from bertcli.training.run_folder import RunFolder
from tests.decided import recipe
from tests.faults import at_row, terminate
from tests.small_runs import run_process, run_warm, small_config, write_config, write_corpus
from tests.warm import Warm


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that tests may change, if they put it back."""
    return write_corpus(tmp_path_factory.mktemp("own") / "corpus.txt")


def sections(text: Path, folder: Path, **changes: dict[str, Any]) -> dict[str, Any]:
    often = {"checkpoint": {"every_steps": 4, "keep_last": 2}, "evaluation": {"every_steps": 3}}
    return small_config(text, folder, **(often | changes))


def config(text: Path, folder: Path, **changes: dict[str, Any]) -> PretrainConfig:
    return check_config(PretrainConfig, sections(text, folder, **changes), "test")


@pytest.fixture(scope="module")
def undisturbed(text: Path) -> Path:
    folder = text.parent / "undisturbed"
    pretrain(config(text, folder), resume=False, overwrite=False)
    return folder


def saved_step(folder: Path) -> int:
    return load_state(RunLayout(folder).steps()[0]).step


def test_a_second_run_in_the_same_folder_is_refused(text: Path, tmp_path: Path) -> None:
    path = write_config(tmp_path / "config.yaml", sections(text, tmp_path / "run"))
    with RunFolder(tmp_path / "run", PretrainConfig).claim(False, False, inputs=lambda: ()):
        result = run_warm("pretrain", path, "--overwrite")
    assert result.returncode == 2
    assert f"output_dir {tmp_path / 'run'} is in use by process {os.getpid()} on " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_size_limit_keeps_what_was_saved(text: Path, undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 5, terminate)
        with pytest.raises(SystemExit):
            pretrain(config(text, folder), resume=False, overwrite=False)
    path = write_config(tmp_path / "config.yaml", sections(text, folder))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    result = run_process("pretrain", path, "--resume", preexec_fn=limit)
    assert result.returncode == 2
    assert "the checkpoint could not be written: file too large; what was saved before is" in result.stderr
    assert "Traceback" not in result.stderr
    assert saved_step(folder) == 5
    pretrain(config(text, folder), resume=True, overwrite=False)
    assert differences(undisturbed, folder) == []


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_folder_that_is_moved_or_removed_ends_its_run(
    text: Path, undisturbed: Path, tmp_path: Path, is_removed: bool
) -> None:
    folder, moved = tmp_path / "run", tmp_path / "moved"

    def take() -> None:
        folder.rename(moved)  # at once, also for files that the checkpoint's thread writes meanwhile
        if is_removed:
            shutil.rmtree(moved, ignore_errors=True)

    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 6, take)
        with pytest.raises(UserError, match=f"output_dir {folder} was moved or removed during the run"):
            pretrain(config(text, folder), resume=False, overwrite=False)
    assert not folder.exists()  # nothing is written where it was
    if not is_removed:
        pretrain(config(text, moved), resume=True, overwrite=False)
        assert differences(undisturbed, moved) == []


def test_a_row_that_the_disk_refuses_is_one_message(tmp_path: Path) -> None:
    log = MetricsLog(RunLayout(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(UserError, match=r"metrics could not be written: file too large"):
            log.write({"step": 1, "split": "train"})
        log.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("options", ["size=1200k", "ro"])
def test_a_full_or_read_only_disk_keeps_what_was_saved(
    text: Path, undisturbed: Path, tmp_path: Path, options: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        with pytest.MonkeyPatch.context() as patch:
            at_row(patch, 5, terminate)
            with pytest.raises(SystemExit):
                pretrain(config(text, disk / "run"), resume=False, overwrite=False)
        subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)
        match = "no space left on device; what was" if options != "ro" else "read-only file system; choose an"
        more = {"every_steps": 1, "keep_last": 9}
        with pytest.raises(UserError, match=match):
            pretrain(config(text, disk / "run", checkpoint=more), resume=True, overwrite=False)
        assert saved_step(disk / "run") >= 5
        subprocess.run(["mount", "-o", "remount,rw,size=9m", str(disk)], check=True)
        pretrain(config(text, disk / "run"), resume=True, overwrite=False)
        assert differences(undisturbed, disk / "run") == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_corpus_that_changes_under_a_run_changes_nothing_until_it_is_resumed(
    text: Path, undisturbed: Path, tmp_path: Path
) -> None:
    folder, content = tmp_path / "run", text.read_text()
    own = {"corpus": {"store": str(tmp_path / "store")}}

    def change() -> None:
        text.write_text(content + "\nA new document. It has two sentences.\n")
        terminate()

    try:
        with pytest.MonkeyPatch.context() as patch:
            at_row(patch, 5, change)
            with pytest.raises(SystemExit):
                pretrain(config(text, folder, **own), resume=False, overwrite=False)
        with pytest.raises(UserError, match=r"corpus.txt: the file changed, from .* bytes to"):
            pretrain(config(text, folder, **own), resume=True, overwrite=False)
        prepare_store(recipe(sections(text, folder, **own)), lambda line: None, overwrite=True)
        with pytest.raises(UserError, match=r"cannot resume: .*store was built again since .*corpus.txt"):
            pretrain(config(text, folder, **own), resume=True, overwrite=False)
    finally:
        text.write_text(content)
    prepare_store(recipe(sections(text, folder, **own)), lambda line: None, overwrite=True)
    pretrain(config(text, folder, **own), resume=True, overwrite=False)
    assert differences(undisturbed, folder) == []


def test_no_row_is_missed_where_rows_were_rare_until_now(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 6, terminate, "heldout")
        with pytest.raises(SystemExit):
            pretrain(config(text, folder, logging={"every_steps": 50}), resume=False, overwrite=False)
    pretrain(config(text, folder, logging={"every_steps": 2}), resume=True, overwrite=False)
    said = capsys.readouterr().err
    assert "resume: logging.every_steps changes from 50 to 2" in said
    assert "are lost" not in said


def test_a_damaged_note_of_the_data_is_a_message(text: Path, undisturbed: Path) -> None:
    note = undisturbed / "data.json"
    content = note.read_text()
    for damaged in (content[:-9], "[]", content.replace('"files"', '"flies"'), content.replace("{", "3", 1)):
        note.write_text(damaged)
        with pytest.raises(UserError, match=r"data.json: damaged .* remove this file and resume"):
            pretrain(config(text, undisturbed), resume=True, overwrite=False)
    note.write_text(content)


@pytest.mark.parametrize(
    ("step", "split"), [(6, "train"), (6, "heldout"), (8, "train"), (12, "train"), (12, "heldout")]
)
def test_sigterm_anywhere_saves_and_ends(
    text: Path, undisturbed: Path, tmp_path: Path, step: int, split: str
) -> None:
    """Before an evaluation, after one, before a checkpoint, and in the very last step."""
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, step, terminate, split)
        with pytest.raises(SystemExit) as end:
            pretrain(config(text, folder), resume=False, overwrite=False)
    assert end.value.code == 128 + signal.SIGTERM
    assert saved_step(folder) == step
    assert not (folder / "model").exists()
    pretrain(config(text, folder), resume=True, overwrite=False)
    assert differences(undisturbed, folder) == []


def test_sigterm_while_the_store_is_built_leaves_a_build_to_go_on_with(
    text: Path, undisturbed: Path, tmp_path: Path
) -> None:
    own = {"corpus": {"store": str(tmp_path / "store")}}
    path = write_config(tmp_path / "config.yaml", sections(text, tmp_path / "run", **own))
    process = Warm("pretrain", path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (tmp_path / "store.partial" / "building.json").exists():
        time.sleep(0.002)
    process.terminate()
    assert process.wait(timeout=60) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    pretrain(config(text, tmp_path / "run", **own), resume=True, overwrite=False)
    assert differences(undisturbed, tmp_path / "run") == []


def test_what_a_killed_process_was_writing_goes_with_the_next_start(text: Path, undisturbed: Path) -> None:
    foreign = [undisturbed / "checkpoints" / ".step-00000007.partial", undisturbed / ".model.partial"]
    for path in foreign:
        path.mkdir()
        (path / "mine").write_text("of somebody else")
    left = new_marked_folder(undisturbed / "checkpoints", "step-00000007.partial")
    copied = undisturbed / ".model.partial-01234567"  # the mark names another folder
    shutil.copytree(left, copied)
    with pytest.raises(UserError, match="cannot resume"):  # nothing goes before every check has passed
        pretrain(config(text, undisturbed, data={"mask_rate": 0.3}), resume=True, overwrite=False)
    assert left.exists()
    pretrain(config(text, undisturbed), resume=True, overwrite=False)
    assert not left.exists()
    assert copied.exists()
    assert all((path / "mine").read_text() == "of somebody else" for path in foreign)
    for path in (*foreign, copied):
        shutil.rmtree(path)


def test_evaluating_heeds_a_signal_at_its_end(
    text: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = pretraining.evaluate

    def interrupted(*arguments: Any, **more: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return evaluate(*arguments, **more)

    monkeypatch.setattr(pretraining, "evaluate", interrupted)
    with pytest.raises(SystemExit) as end:
        pretrain(config(text, tmp_path / "run"), resume=False, overwrite=False)
    assert end.value.code == 128 + signal.SIGINT
    assert saved_step(tmp_path / "run") == 3
    monkeypatch.undo()
    pretrain(config(text, tmp_path / "run"), resume=True, overwrite=False)
    assert differences(undisturbed, tmp_path / "run") == []
