"""The small task that follows what may change on disk: world pointers and the keys file."""

from __future__ import annotations

import asyncio
import logging

from world_core.errors import WorldError
from world_server.service import Service

_LOG = logging.getLogger(__name__)


async def watch(service: Service) -> None:
    """Look at the pointers and the keys file again and again, until cancelled."""
    while True:
        await asyncio.sleep(service.settings.watch_s)
        await look_once(service)


async def look_once(service: Service) -> None:
    """Switch the worlds whose pointer names another version, and read a changed keys file.

    A version that cannot be served, or a keys file that cannot be read, is reported and the old
    one stays in force.
    """
    for name in service.worlds.names:
        try:
            if await service.worlds.refresh(name):
                service.metrics.count_switch("done")
        except WorldError as error:
            service.metrics.count_switch("refused")
            _LOG.error("world %s was not switched: %s", name, error)
    try:
        service.keys.refresh()
    except WorldError as error:
        _LOG.error("the old keys stay in force: %s", error)
