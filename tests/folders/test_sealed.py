"""Whatever happens to a sealed folder is noticed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertcli.folders.sealed import MANIFEST, find_damage, seal

FILES = {"model/weights": bytes(range(200)), "state.json": b'{"step": 5}\n', "empty": b""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "sealed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    seal(tmp_path / "sealed", "sealed")
    return tmp_path / "sealed"


def test_a_sealed_folder_is_whole_and_so_is_its_copy(folder: Path, tmp_path: Path) -> None:
    assert find_damage(folder) is None
    shutil.copytree(folder, tmp_path / "copy")
    assert find_damage(tmp_path / "copy") is None
    (folder / ".DS_Store").write_bytes(b"left by a file browser")
    assert find_damage(folder) is None


@given(st.sampled_from(["model/weights", "state.json", MANIFEST]), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_no_byte_can_change_and_no_end_be_cut_off(folder: Path, name: str, data: st.DataObject) -> None:
    path = folder / name
    content = path.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != content[place]))
    try:
        for damaged in (content[:place] + bytes([byte]) + content[place + 1 :], content[:place]):
            path.write_bytes(damaged)
            damage = find_damage(folder)
            assert damage is not None
            assert name in damage
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    damage = find_damage(folder)
    assert damage is not None
    assert name in damage


def test_a_manifest_edited_by_hand_is_noticed(folder: Path) -> None:
    path = folder / MANIFEST
    value = json.loads(path.read_text())
    without = {name: entry for name, entry in value["files"].items() if name != "state.json"}
    larger = value["files"] | {"empty": value["files"]["empty"] | {"bytes": 1}}
    for files in (without, larger, {}, [], None, "files"):
        path.write_text(json.dumps(value | {"files": files}, indent=1) + "\n")
        assert find_damage(folder) == f"{MANIFEST} has changed"
    for text in ("[]", "{}", "null", "[" * 100_000):
        path.write_text(text)
        assert (find_damage(folder) or "").startswith(f"{MANIFEST} cannot be read")


def test_a_file_that_cannot_be_read_is_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path, kind: str) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("bertcli.folders.sealed.file_hash", broken)
    assert find_damage(folder) == "empty cannot be read (Input/output error)"
