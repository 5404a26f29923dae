"""What a killed export leaves is removed by the next one to the same place."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.system.errors import UserError

WRITE = """
import sys, time
from pathlib import Path
from bertcli.folders.sealed import write_folder

def fill(partial):
    (partial / "model.onnx").write_bytes(b"the first half")
    print("in the middle", flush=True)
    time.sleep(600)

write_folder(Path(sys.argv[1]), fill, sealed=False)
"""
"""Writes as an export does, without what it imports."""


def test_what_a_killed_export_left_is_removed_and_a_living_one_keeps_its_own(
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_bertcli: Callable[..., tuple[int, str, str]],
) -> None:
    begun: list[Path] = []

    def write_onnx(model: object, file: Path) -> None:  # as far as this test needs an export to go
        begun.append(file)
        raise UserError("enough")

    monkeypatch.setattr("bertcli.folders.onnx_folder.write_onnx", write_onnx)
    out = tmp_path / "out"
    command = [sys.executable, "-c", WRITE, str(out)]
    killed, living = (subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2))
    try:
        for process in (killed, living):
            assert process.stdout is not None
            assert process.stdout.readline() == "in the middle\n"
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        assert len(list(tmp_path.glob(".out.partial-*/model.onnx"))) == 2
        code, _, err = run_bertcli("export", models / "classification", out)
        assert (code, "error: enough" in err, len(begun)) == (2, True, 1), err
        (left,) = tmp_path.glob(".out.partial-*")
        assert f'"process": {living.pid},' in (left / ".bertcli-unfinished.json").read_text()
        living.kill()
        living.wait()
        run_bertcli("export", models / "classification", out)
        assert list(tmp_path.iterdir()) == []
    finally:
        for process in (killed, living):
            process.kill()
            process.communicate()
