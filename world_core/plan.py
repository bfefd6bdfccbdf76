"""What a world needs of a machine, and whether it has it: arithmetic over ``unit_costs``.

Nothing is loaded for a plan. ``serving`` is for a world that is there or will be, ``building`` for
one that is to be made; ``require`` refuses what would not fit, with the figures and with what to
change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from world_core.errors import TooLargeError
from world_core.extent import Extent, dense_bytes
from world_core.indexes.faiss_tiers import PROBES, cells_of, pieces_of
from world_core.indexes.jvm import heap_of
from world_core.machine import Machine
from world_core.unit_costs import ENCODERS, GIB, HEADROOM, MIB, PASSAGES_A_PAGE, cost

INDEXING = {"ivf": "cluster_vector", "ivfpq": "product_vector", "hnsw": "graph_vector"}
"""The cost of putting a vector into an index, for tiers that do more than write it down."""


@dataclass(frozen=True, slots=True)
class Need:
    """One resource: bytes needed by part, bytes that can be had, and what may be done about it.

    ``changes`` are whole sentences, the cheapest change first.
    """

    resource: str
    parts: Mapping[str, int]
    free: int
    changes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all parts."""
        return sum(self.parts.values())

    @property
    def usable(self) -> int:
        """Bytes that may be taken: what is free without the head room."""
        return int(self.free * (1 - HEADROOM))

    @property
    def fits(self) -> bool:
        """True when what is needed can be had."""
        return self.bytes <= self.usable


@dataclass(frozen=True, slots=True)
class Rates:
    """CPU seconds of a request by kind, and requests a second that the cores give."""

    cpu_s: Mapping[str, float]
    per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """What serving takes; ``gpu`` is what the exact tier would take on a GPU, if there are rows."""

    extent: Extent
    memory: Need
    cached: int
    gpu: Need | None
    heap_mb: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class BuildingPlan:
    """What building takes; ``hours`` by stage on all cores, the GPU used where the encoder can."""

    extent: Extent
    memory: Need
    disk: Need
    hours: Mapping[str, float]


def serving(
    extent: Extent, machine: Machine, *, processes: int = 1, workers: int = 0
) -> ServingPlan:
    """Return what serving a world takes with so many processes that open it.

    Args:
        extent: what the world holds.
        machine: where it is served.
        processes: processes that open it.
        workers: further processes, which answer HTTP and open nothing.

    Memory counts what a process holds for itself, once each, and the files every search reads,
    once: the dense and lexical index and the columns. Page texts and passages are read as they are
    asked for, ``cached`` says how much of them the system would keep if it could.
    """
    stored = extent.stored
    heap = heap_of(stored.get("lexical", 0)) if extent.engine == "lucene" else 0
    parts = {
        "processes": round(processes * cost("process") + workers * cost("worker")),
        "java": processes * (round(cost("java")) + heap * MIB) if heap else 0,
        "encoder": processes * ENCODERS[extent.encoder].memory if extent.encoder else 0,
        "views": processes
        * round(cost("view_version") * extent.versions + cost("view_passage") * extent.passages),
        "dense index": stored.get("dense", 0),
        "lexical index": stored.get("lexical", 0),
        "sparse index": stored.get("sparse", 0),
        "columns": stored.get("columns", 0),
    }
    memory = Need("memory", parts, machine.memory_free)
    if not memory.fits:
        memory = replace(memory, changes=_memory_changes(extent, memory, processes))
    return ServingPlan(
        extent=extent,
        memory=memory,
        cached=stored.get("pages.sqlite", 0) + stored.get("passages.bin", 0),
        gpu=_gpu(extent, machine),
        heap_mb=heap,
        rates=rates(extent, machine),
    )


def building(extent: Extent, machine: Machine, *, workers: int, used: int = 0) -> BuildingPlan:
    """Return what building a world takes with so many worker processes.

    Args:
        extent: what it will hold.
        machine: where it is built.
        workers: processes that read pages.
        used: bytes that an earlier run of the same build has written already, which count as free.
    """
    encoder = ENCODERS[extent.encoder] if extent.encoder else None
    pages, scale = extent.pages, _scale(extent)
    memory = Need(
        "memory",
        {
            "stages": round(cost("build")) + workers * round(cost("build_worker")),
            "java": round(cost("build_heap") + cost("java")) if extent.engine == "lucene" else 0,
            "encoder": encoder.build_memory if encoder else 0,
            "vectors": 2 * 4 * extent.rows * extent.dim,
            "dense index": dense_bytes(extent.tier, extent.rows, extent.dim) if encoder else 0,
        },
        machine.memory_free,
    )
    page = cost("draft_page") + cost("work_shingles")
    work = page * pages * scale + cost("work_passage") * extent.passages
    disk = Need(
        "disk",
        {
            "world": extent.disk,
            "work folder": round(work),
            "vector cache": extent.rows * (4 * extent.dim + 64),
        },
        machine.disk_free + used,
    )
    if not memory.fits:
        memory = replace(memory, changes=_build_changes(extent, memory))
    if not disk.fits:
        disk = replace(disk, changes=_disk_changes(extent, disk))
    return BuildingPlan(extent, memory, disk, _hours(extent, machine, workers))


def require(needs: Sequence[Need], what: str, *, override: str) -> None:
    """Refuse what does not fit, before anything of it is loaded or written.

    Args:
        needs: what is needed of each resource.
        what: what for, as in "serving debian-light".
        override: the flag that goes on all the same.

    Raises:
        TooLargeError: the first resource of which there is too little.
    """
    for need in needs:
        if not need.fits:
            parts = ", ".join(f"{name} {shown(size)}" for name, size in _largest(need.parts))
            raise TooLargeError(
                f"{what[:1].upper()}{what[1:]} needs {shown(need.bytes)} of {need.resource} "
                f"({parts}); of the {shown(need.free)} free here {HEADROOM:.0%} is left to others, "
                f"so {shown(need.usable)} can be used.",
                hint=" ".join((*need.changes, f"To go on all the same: {override}.")),
            )


def rates(extent: Extent, machine: Machine) -> Rates:
    """Return CPU seconds of a request and the rate of all cores, by kind of request.

    A lexical search is taken to grow with the square root of the units, since most postings are
    skipped; an exact dense search grows with the rows.
    """
    lexical = cost("lexical_search") * math.sqrt(extent.units / 40_000)
    cpu = {
        "lexical": cost("http") + lexical + cost("hits"),
        "fetch": cost("http") + cost("fetch"),
    }
    if extent.encoder:
        encode = ENCODERS[extent.encoder].query_s
        dense = dense_seconds(extent.tier, extent.rows, extent.dim)
        cpu["hybrid"] = cpu["lexical"] + encode + dense + cost("complete")
    return Rates(cpu, {kind: machine.cores / seconds for kind, seconds in cpu.items()})


def dense_seconds(tier: str, rows: int, dim: int) -> float:
    """Return the CPU seconds of one dense search; one of an unknown tier as if it were exact."""
    if not rows:
        return 0.0
    if tier in PROBES:
        probed = rows * min(1.0, PROBES[tier] / cells_of(rows))
        centres = cells_of(rows) * dim * 4 / cost("scan_bytes")
        width = dim if tier == "ivf" else pieces_of(dim)
        return centres + probed * width / cost("probe_bytes")
    if tier == "hnsw":
        return cost("graph_search") * math.log2(rows + 1) / math.log2(100_000) * dim / 384
    return rows * dim * 2 / cost("scan_bytes")


def shown(size: float) -> str:
    """Return a number of bytes as a person reads it: in MiB or GiB."""
    return f"{size / GIB:.1f} GiB" if abs(size) >= GIB else f"{size / MIB:.0f} MiB"


def _scale(extent: Extent) -> float:
    """Return the length of a page against that of the measured world."""
    return extent.passages / (PASSAGES_A_PAGE * extent.pages) if extent.pages else 0.0


def _gpu(extent: Extent, machine: Machine) -> Need | None:
    if not extent.rows:
        return None
    parts = {
        "vectors": 2 * extent.rows * extent.dim,
        "context": round(cost("gpu_context")),
        "work space": round(cost("gpu_workspace")),
    }
    free = max((gpu.memory_free for gpu in machine.gpus), default=0)
    return Need("GPU memory", parts, free)


def _hours(extent: Extent, machine: Machine, workers: int) -> Mapping[str, float]:
    """Return hours by stage: what runs in the workers is shared among the cores they can use."""
    shared = max(min(machine.cores, workers), 1e-3)
    pages = extent.pages * _scale(extent)
    tool = "tantivy_page" if extent.engine == "tantivy" else "lucene_page"
    seconds = {
        "read": cost("read_page") * pages / shared,
        "snapshot": cost("snapshot_page") * pages,
        "passages": cost("passages_page") * pages / shared,
        "near": cost("shingles_page") * pages / shared + cost("near_page") * pages,
        "tables": cost("tables_page") * pages,
        "lexical": cost(tool) * pages,
        "encode": 0.0,
        "dense": 0.0,
    }
    if extent.encoder:
        encoder = ENCODERS[extent.encoder]
        on_gpu = machine.gpus and encoder.gpu_passage_s
        one = encoder.gpu_passage_s if on_gpu else encoder.passage_s / shared
        seconds["encode"] = extent.rows * one
        if extent.tier in INDEXING:
            index = cost(INDEXING[extent.tier])
            seconds["dense"] = extent.rows * index * extent.dim / 384
    return {stage: value / 3600 for stage, value in seconds.items()}


def _largest(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((n, s) for n, s in parts.items() if s), key=lambda part: -part[1])[:4]


def _memory_changes(extent: Extent, need: Need, processes: int) -> tuple[str, ...]:
    """Return what would bring a world that does not fit closer to fitting."""
    changes = []
    if processes > 1:
        changes.append(f"Serve with fewer than {processes} processes (--workers).")
    changes += _smaller_index(extent)
    changes.append(_larger("memory", need))
    return tuple(changes)


def _build_changes(extent: Extent, need: Need) -> tuple[str, ...]:
    return (*_smaller_index(extent), _larger("memory", need))


def _disk_changes(extent: Extent, need: Need) -> tuple[str, ...]:
    return (
        f"Free {shown(need.bytes - need.usable)}, or build on another disk (--out, --cache).",
        *_smaller_index(extent),
    )


def _smaller_index(extent: Extent) -> list[str]:
    """Return the recipe's ways to a smaller dense index, with the size each would have."""
    now = dense_bytes(extent.tier, extent.rows, extent.dim)
    changes = [
        f'Build with tier = "{tier}" in [dense]: its index has {shown(size)}.'
        for tier in ("ivf", "ivfpq")
        if extent.rows and (size := dense_bytes(tier, extent.rows, extent.dim)) < now
    ]
    if extent.rows > extent.versions > 0:
        size = dense_bytes(extent.tier, extent.versions, extent.dim)
        changes.append(f'Build with rows = "lead" in [dense]: its index has {shown(size)}.')
    return changes


def _larger(resource: str, need: Need) -> str:
    return f"Use a machine with {shown(need.bytes / (1 - HEADROOM))} of free {resource}."
