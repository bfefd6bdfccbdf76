"""Machines of any size for the tests of plans."""

from __future__ import annotations

from pathlib import Path

from world_core.machine import Gpu, Machine

GIB = 1 << 30


def machine(*, memory: float = 16, disk: float = 100, cores: float = 4, gpu: float = 0) -> Machine:
    """Return a machine with so many GiB of memory, disk and GPU memory, all of it free."""
    cards = (Gpu("card", int(gpu * GIB), int(gpu * GIB)),) if gpu else ()
    size = int(memory * GIB)
    return Machine(cores, size, size, int(disk * GIB), "hardware", cards)


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write files of ``/proc`` and ``/sys`` below a root and return that."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
