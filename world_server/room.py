"""Whether this machine has room for the worlds to be served, asked before any of them is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from world_core import extent, machine, manifest, plan
from world_core.errors import BadWorldError
from world_core.machine import Machine
from world_core.plan import Need, ServingPlan
from world_server.pointer import WorldFolder
from world_server.settings import Settings

OVERRIDE = "--no-plan-check"


def plan_worlds(
    worlds: Sequence[str], here: Machine, *, processes: int, workers: int = 0
) -> list[tuple[str, ServingPlan]]:
    """Return name and plan of each world, from its manifest alone.

    ``processes`` open the worlds, ``workers`` answer HTTP beside them.

    Raises:
        BadWorldError: a folder is no world, or its manifest cannot be read.
    """
    plans = []
    for world in worlds:
        stated = manifest.read(WorldFolder(Path(world)).target())
        serving = plan.serving(extent.of_world(stated), here, processes=processes, workers=workers)
        plans.append((f"{stated.name}@{stated.version}", serving))
    return plans


def plan_for(settings: Settings, here: Machine) -> list[tuple[str, ServingPlan]]:
    """Return name and plan of each world of the settings, opened where they say.

    Raises:
        BadWorldError: a folder is no world, or its manifest cannot be read.
    """
    if settings.has_engine_process:
        return plan_worlds(settings.worlds, here, processes=1, workers=settings.workers)
    return plan_worlds(settings.worlds, here, processes=settings.workers)


def together(plans: Sequence[ServingPlan]) -> Need:
    """Return the memory of all worlds in one server: its processes and Java serve every world."""
    parts: dict[str, int] = {}
    for one in plans:
        for name, size in one.memory.parts.items():
            if name in ("processes", "java"):
                parts[name] = max(parts.get(name, 0), size)
            else:
                parts[name] = parts.get(name, 0) + size
    changes = tuple(dict.fromkeys(change for one in plans for change in one.memory.changes))
    if not changes and len(plans) > 1:
        changes = ("Serve fewer worlds on this machine.",)
    return Need("memory", parts, min(one.memory.free for one in plans), changes)


def check(settings: Settings, here: Machine | None = None) -> None:
    """Refuse to serve worlds that need more memory than is free, unless the settings say otherwise.

    A folder that is no world is passed over: opening it says what is wrong with it.

    Raises:
        TooLargeError: they do not fit; says what each part takes and what to change.
    """
    if not settings.plan_check:
        return
    good = [world for world in settings.worlds if _has_manifest(world)]
    if good:
        plans = plan_for(replace(settings, worlds=tuple(good)), here or _machine(good[0]))
        names = ", ".join(name for name, _ in plans)
        need = together([one for _, one in plans])
        plan.require([need], f"serving {names}", override=OVERRIDE)


def check_one(folder: Path, here: Machine | None = None) -> None:
    """Refuse to open one more version in this process where there is no memory for it.

    Raises:
        TooLargeError: it does not fit beside what is open.
        BadWorldError: the folder is no world, or its manifest cannot be read.
    """
    ((name, one),) = plan_worlds([str(folder)], here or _machine(str(folder)), processes=1)
    plan.require([one.memory], f"serving {name}", override=OVERRIDE)


def _machine(world: str) -> Machine:
    return machine.look(Path(world))


def _has_manifest(world: str) -> bool:
    try:
        manifest.read(WorldFolder(Path(world)).target())
    except BadWorldError:
        return False
    return True
