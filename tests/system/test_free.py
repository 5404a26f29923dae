from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.system import memory as free
from bertcli.system.memory import all_memory, free_memory

CPU = torch.device("cpu")
GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GiB available, whose files stand in a folder."""
    (tmp_path / "meminfo").write_text(f"MemTotal: {9 * GIB >> 10} kB\nMemAvailable:   {8 * GIB >> 10} kB\n")
    for name, path in (("MEMINFO", "meminfo"), ("OWN_CGROUP", "own"), ("CGROUPS", "cgroup")):
        monkeypatch.setattr(free, name, tmp_path / path)
    return tmp_path


def write_group(folder: Path, limit: str, usage: int, cache: int, names: tuple[str, str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cache}\n")


V2 = ("memory.max", "memory.current", "inactive_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def test_without_control_groups_it_is_what_the_machine_has_available(machine: Path) -> None:
    assert free_memory(CPU) == 8 * GIB


def test_all_memory_is_the_same_however_much_of_it_is_free(machine: Path) -> None:
    (machine / "own").write_text("0::/job\n")
    assert all_memory(CPU) == 9 * GIB
    for used in (0, 3 * GIB):
        write_group(machine / "cgroup/job", str(4 * GIB), used, 0, V2)
        assert (all_memory(CPU), free_memory(CPU)) == (4 * GIB, 4 * GIB - used)


def test_a_groups_limit_counts_less_what_is_used_but_for_the_page_cache(machine: Path) -> None:
    (machine / "own").write_text("0::/job\n")
    write_group(machine / "cgroup/job", str(4 * GIB), 3 * GIB, GIB, V2)
    assert free_memory(CPU) == 2 * GIB


def test_the_limit_of_a_group_above_counts_too(machine: Path) -> None:
    (machine / "own").write_text("0::/slice/job\n")
    write_group(machine / "cgroup/slice/job", "max", 0, 0, V2)
    write_group(machine / "cgroup/slice", str(3 * GIB), GIB, 0, V2)
    assert free_memory(CPU) == 2 * GIB


def test_the_first_version_of_control_groups(machine: Path) -> None:
    (machine / "own").write_text("9:name=systemd:/x\n4:memory:/job\n")
    write_group(machine / "cgroup/memory/job", str(GIB), GIB // 2, 0, V1)
    assert free_memory(CPU) == GIB // 2


def test_in_a_container_the_group_is_at_the_root(machine: Path) -> None:
    (machine / "own").write_text("0::/docker/4f3a\n")
    write_group(machine / "cgroup", str(GIB), 0, 0, V2)
    assert free_memory(CPU) == GIB


def test_a_group_over_its_limit_leaves_nothing(machine: Path) -> None:
    (machine / "own").write_text("0::/\n")
    write_group(machine / "cgroup", str(GIB), 2 * GIB, 0, V2)
    assert free_memory(CPU) == 0


def test_a_machine_that_does_not_tell_gives_all_that_it_has(machine: Path) -> None:
    (machine / "meminfo").unlink()
    assert free_memory(CPU) > GIB // 4


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_tells_what_it_has_left() -> None:
    before = free_memory(torch.device("cuda"))
    held = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    assert free_memory(torch.device("cuda")) <= before - GIB + (64 << 20)
    del held
