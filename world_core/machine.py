"""What this machine has: cores, memory, disk and GPUs, as far as this process may use them.

A container's limits are the machine: memory is the least of what the hardware has, what the control
groups of the process allow (both versions, every level up to the root) and its address space limit.
Read from ``/proc`` and ``/sys``; on a system without them only what Python itself can say is known.
"""

from __future__ import annotations

import csv
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 1 << 60
"""A limit this high is none: version 1 of the control groups writes a number near 2**63."""

_GPU_QUERY = ("--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits")
_GPU_SECONDS = 10
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics processor and its memory in bytes."""

    name: str
    memory: int
    memory_free: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What a process may use here; sizes in bytes.

    Attributes:
        cores: processors, a fraction where a control group grants one.
        memory: all memory a process may ever have.
        memory_free: what of it can be had now; the page cache counts as free.
        disk_free: free room where a folder lies, or would lie.
        memory_source: what sets ``memory``: "hardware", "control group" or "address space limit".
        gpus: graphics processors, in the driver's order.
    """

    cores: float
    memory: int
    memory_free: int
    disk_free: int
    memory_source: str = "hardware"
    gpus: tuple[Gpu, ...] = ()


def look(folder: Path, *, root: Path = Path("/")) -> Machine:
    """Return what this process may use, with the free disk room of a folder that need not exist.

    Args:
        folder: where files lie or will lie.
        root: the folder that holds ``proc`` and ``sys``; another one only in tests.
    """
    memory, free = _hardware_memory(root)
    source = "hardware"
    for limit, used in _group_memory(root):
        if limit < memory:
            memory, source = limit, "control group"
        free = min(free, max(0, limit - used))
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space != resource.RLIM_INFINITY and space < memory:
        memory, source = space, "address space limit"
    return Machine(
        cores=_cores(root),
        memory=memory,
        memory_free=min(free, memory),
        disk_free=_disk_free(folder),
        memory_source=source,
        gpus=gpus(),
    )


def gpus(command: str = "nvidia-smi") -> tuple[Gpu, ...]:
    """Return the GPUs that the driver's own command lists; none where there is no such command."""
    found = shutil.which(command)
    if found is None:
        return ()
    try:
        shown = subprocess.run(  # noqa: S603 - the driver's command, fixed arguments
            [found, *_GPU_QUERY], capture_output=True, text=True, check=True, timeout=_GPU_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        # The command without a driver or a card: there is nothing to compute on.
        return ()
    return tuple(_gpu_rows(shown.stdout))


def _gpu_rows(text: str) -> Iterator[Gpu]:
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        # Cards that share the host's memory state "[N/A]" for their own.
        if len(row) == 3 and row[1].isdecimal() and row[2].isdecimal():
            yield Gpu(row[0], int(row[1]) * _MIB, int(row[2]) * _MIB)


def _hardware_memory(root: Path) -> tuple[int, int]:
    """Return all and available memory of the hardware."""
    stated = dict(_pairs(root / "proc" / "meminfo"))
    total, free = stated.get("MemTotal:"), stated.get("MemAvailable:")
    if total is not None and free is not None:
        return total * 1024, free * 1024
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return whole, whole


def _group_memory(root: Path) -> Iterator[tuple[int, int]]:
    """Yield (limit, bytes used beyond the page cache) of every group that limits memory."""
    for folder in _group_folders(root, "memory"):
        limit = _number(folder / "memory.max")
        used = _number(folder / "memory.current")
        if limit is None:
            limit = _number(folder / "memory.limit_in_bytes")
            used = _number(folder / "memory.usage_in_bytes")
        if limit is None or limit >= _UNLIMITED:
            continue
        stat = dict(_pairs(folder / "memory.stat"))
        prefix = "total_" if "total_inactive_file" in stat else ""
        cache = sum(stat.get(f"{prefix}{kind}_file", 0) for kind in ("inactive", "active"))
        yield limit, max(0, (used or 0) - cache)


def _cores(root: Path) -> float:
    try:
        cores = float(len(os.sched_getaffinity(0)))
    except AttributeError:
        cores = float(os.cpu_count() or 1)
    for folder in _group_folders(root, "cpu"):
        quota, period = _quota(folder)
        if quota > 0 and period > 0:
            cores = min(cores, quota / period)
    return cores


def _quota(folder: Path) -> tuple[int, int]:
    """Return microseconds of processor time and of the period they are for, 0 where unlimited."""
    words = _text(folder / "cpu.max").split()
    if len(words) == 2:
        return (int(words[0]) if words[0].isdecimal() else 0), int(words[1])
    return (
        max(0, _number(folder / "cpu.cfs_quota_us") or 0),
        _number(folder / "cpu.cfs_period_us") or 0,
    )


def _group_folders(root: Path, controller: str) -> list[Path]:
    """Return the folders of this process's groups for a controller, and all above them.

    A container sees its own group at the root of the mount while ``/proc`` names its path on the
    host, so a folder that is not there is passed over and the root is always looked at.
    """
    mount = root / "sys" / "fs" / "cgroup"
    places = [(mount, ""), (mount / controller, "")]
    for line in _text(root / "proc" / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if not names:
            places.append((mount, path))
        elif controller in names.split(","):
            places.append((mount / controller, path))
    folders: dict[Path, None] = {}
    for base, path in places:
        inner = Path(path.strip("/"))
        for step in (inner, *inner.parents):
            if (base / step).is_dir():
                folders[base / step] = None
    return list(folders)


def _disk_free(folder: Path) -> int:
    """Return the free bytes of the file system of the nearest folder that exists."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def _pairs(path: Path) -> Iterator[tuple[str, int]]:
    """Yield name and number of each line that has them."""
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdecimal():
            yield words[0], int(words[1])


def _number(path: Path) -> int | None:
    """Return the number a file holds; ``None`` for "max" and for a file that is not there."""
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdecimal() else None


def _text(path: Path) -> str:
    """Return a file's text, "" where it cannot be read: a machine without it sets no limit."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
