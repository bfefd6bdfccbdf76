"""The small task that follows what may change on disk: world pointers and the keys file."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from world_core.errors import WorldError
from world_server.errors import EngineLostError
from world_server.problems import contained
from world_server.service import Service


async def watch(service: Service) -> None:
    """Look at the pointers and the keys file again and again, until cancelled."""
    while True:
        await asyncio.sleep(service.settings.watch_s)
        await look_once(service)


async def look_once(service: Service) -> None:
    """Switch the worlds whose pointer names another version, and read a changed keys file.

    A version that cannot be served, or a keys file that cannot be read, is reported and the old
    one stays in force; so it is after an error that nobody foresaw. The engine process, where there
    is one, is told what was counted, lest it be lost with this process.
    """
    for name in service.worlds.names:
        await contained(_follow(service, name), f"world {name} was not switched")
    await contained(_read_keys(service), "the old keys stay in force")
    await contained(_tell_counts(service), "the counts were not told")


async def _follow(service: Service, name: str) -> None:
    try:
        switched = await service.worlds.refresh(name)
    except (WorldError, OSError):
        service.metrics.count_switch("refused")
        raise
    if switched:
        service.metrics.count_switch("done")


async def _read_keys(service: Service) -> None:
    service.keys.refresh()


async def _tell_counts(service: Service) -> None:
    with suppress(EngineLostError):  # told again when there is another
        await service.worlds.totals(service.counts())
