"""How much memory a process may take, and how much of it is free: of the machine and its control groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
MEMINFO = Path("/proc/meminfo")


def free_memory(device: torch.device) -> int:
    """Bytes that can be taken on `device` without an out-of-memory kill or error."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min([_bytes("MemAvailable"), *(left for _, left in _cgroups())])


def all_memory(device: torch.device) -> int:
    """Bytes that a process could take on `device` if nothing else ran there; no load changes it."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return min([_bytes("MemTotal"), *(limit for limit, _ in _cgroups())])


def _bytes(what: str) -> int:
    """What the machine says of its memory (MemAvailable: without swapping); if nothing, all of its memory."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith(f"{what}:"):
                return int(line.split()[1]) << 10
    except OSError:  # not Linux
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroups() -> Iterator[tuple[int, int]]:
    """The limit, and the bytes left, of the memory cgroup of this process and of each above it, if they have
    limits."""
    try:
        entries = [line.split(":", 2) for line in OWN_CGROUP.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, own in entries:
        if controllers == "":
            root, names = CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif controllers == "memory":
            root = CGROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # In a container the path may be the host's; the container's own group is then the root.
        path = root / own.lstrip("/")
        for folder in [path, *path.parents]:
            if folder == root.parent:
                break
            if (limited := _limit_and_left(folder, *names)) is not None:
                yield limited


def _limit_and_left(folder: Path, limit: str, usage: str, cache: str) -> tuple[int, int] | None:
    """The limit of one group and the bytes left; None: it has no limit. The page cache counts as free."""
    try:
        most = (folder / limit).read_text().strip()
        if most == "max":
            return None
        used = int((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(most), max(0, int(most) - used + int(stat.get(cache, 0)))
    except (OSError, ValueError):
        return None
