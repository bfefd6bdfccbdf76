"""Plans as a person reads them, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from world_core.extent import Extent
from world_core.machine import Machine
from world_core.plan import BuildingPlan, Need, Rates, ServingPlan, shown
from world_core.unit_costs import COSTS, ENCODERS, HEADROOM


def machine_lines(machine: Machine) -> list[str]:
    """Return one line on what the machine has."""
    gpus = ", ".join(f"{gpu.name} {shown(gpu.memory_free)} free" for gpu in machine.gpus)
    memory = f"memory {shown(machine.memory)} ({machine.memory_source})"
    free = f"{shown(machine.memory_free)} free; disk {shown(machine.disk_free)} free"
    rest = f"GPU {gpus or 'none'}; {HEADROOM:.0%} is left to others"
    return [f"machine      {machine.cores:g} cores; {memory}, {free}; {rest}"]


def extent_lines(extent: Extent) -> list[str]:
    """Return what a world holds, a line a fact."""
    dense = (
        f"{extent.rows:,} rows of {extent.dim}, tier {extent.tier}, encoder {extent.encoder}"
        if extent.encoder
        else "none"
    )
    counts = (f"{getattr(extent, name):,} {name}" for name in ("pages", "versions", "passages"))
    return [
        f"holds        {', '.join(counts)}",
        f"dense        {dense}",
        f"lexical      {extent.units:,} units, {extent.engine}",
        f"disk         {shown(extent.disk)} ({_parts(extent.stored)})",
    ]


def serving_lines(plan: ServingPlan) -> list[str]:
    """Return what serving takes, a line a resource."""
    heap = [f"lexical heap {plan.heap_mb} MiB"] if plan.heap_mb else []
    gpu = [f"GPU memory   {need_line(plan.gpu)}; for the exact tier only"] if plan.gpu else []
    return [
        *heap,
        f"serve memory {need_line(plan.memory)}",
        f"page cache   {shown(plan.cached)} more, if there is room, keep texts off the disk",
        *gpu,
        *_rate_lines(plan.rates),
    ]


def building_lines(plan: BuildingPlan) -> list[str]:
    """Return what building takes, a line a resource."""
    stages = ", ".join(f"{stage} {hours:.2g}" for stage, hours in plan.hours.items() if hours)
    return [
        f"build memory {need_line(plan.memory)}",
        f"build disk   {need_line(plan.disk)}",
        f"build hours  {sum(plan.hours.values()):.2g} ({stages})",
    ]


def source_lines() -> Iterator[str]:
    """Yield the unit costs, each with its unit and source."""
    for name, entry in COSTS.items():
        yield f"{name:16} {entry.value:<12.6g} {entry.unit}; {entry.source}"
    for kind, encoder in ENCODERS.items():
        yield (
            f"{kind:16} {encoder.query_s * 1e3:g} ms a query, {1 / encoder.passage_s:.3g} passages "
            f"a CPU s, {shown(encoder.memory)}; {encoder.source}"
        )


def machine_json(machine: Machine) -> dict[str, object]:
    """Return the machine as plain values, sizes in bytes."""
    return {
        "cores": machine.cores,
        "memory": machine.memory,
        "memory_free": machine.memory_free,
        "memory_source": machine.memory_source,
        "disk_free": machine.disk_free,
        "gpus": [
            {"name": gpu.name, "memory": gpu.memory, "memory_free": gpu.memory_free}
            for gpu in machine.gpus
        ],
        "headroom": HEADROOM,
    }


def extent_json(extent: Extent) -> dict[str, object]:
    """Return what a world holds as plain values, sizes in bytes."""
    return {
        "pages": extent.pages,
        "versions": extent.versions,
        "passages": extent.passages,
        "rows": extent.rows,
        "dim": extent.dim,
        "encoder": extent.encoder,
        "tier": extent.tier,
        "engine": extent.engine,
        "units": extent.units,
        "disk": extent.disk,
        "disk_by_part": dict(extent.stored),
    }


def serving_json(plan: ServingPlan) -> dict[str, object]:
    """Return what serving takes as plain values, sizes in bytes."""
    return {
        "memory": need_json(plan.memory),
        "page_cache": plan.cached,
        "gpu_memory": need_json(plan.gpu) if plan.gpu else None,
        "lexical_heap_mb": plan.heap_mb,
        "cpu_ms": {kind: value * 1e3 for kind, value in plan.rates.cpu_s.items()},
        "per_s": dict(plan.rates.per_s),
    }


def building_json(plan: BuildingPlan) -> dict[str, object]:
    """Return what building takes as plain values, sizes in bytes."""
    return {
        "memory": need_json(plan.memory),
        "disk": need_json(plan.disk),
        "hours": sum(plan.hours.values()),
        "hours_by_stage": dict(plan.hours),
    }


def _rate_lines(rates: Rates) -> list[str]:
    rows = (
        f"{kind} {rates.per_s[kind]:.3g}/s at {seconds * 1e3:.2g} ms of CPU"
        for kind, seconds in rates.cpu_s.items()
    )
    return [f"rates        {'; '.join(rows)}"]


def need_line(need: Need) -> str:
    """Return what is needed of a resource and whether it is there."""
    if not need.free:
        return f"{shown(need.bytes)}, none here ({_parts(need.parts)})"
    verdict = "fits" if need.fits else "DOES NOT FIT"
    return f"{shown(need.bytes)} of {shown(need.usable)} usable: {verdict} ({_parts(need.parts)})"


def _parts(parts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {shown(size)}" for name, size in parts.items() if size)


def need_json(need: Need) -> dict[str, object]:
    """Return what is needed of a resource as plain values, sizes in bytes."""
    return {
        "needed": need.bytes,
        "by_part": dict(need.parts),
        "usable": need.usable,
        "fits": need.fits,
        "changes": list(need.changes),
    }
