"""Control routes: for operators, behind the control key."""

from __future__ import annotations

from world_core.errors import WorldError
from world_server.dialects.jsonbytes import json_reply
from world_server.exchange import Reply, Request
from world_server.service import Service


async def switch(service: Service, request: Request) -> Reply:
    """Switch a world to the version its pointer names, now, even one that was refused before.

    All workers over an engine process switch at once; with an engine in each worker the others
    follow with their next look at the pointer.
    """
    name = request.tail
    try:
        switched = await service.worlds.refresh(name, again=True)
    except WorldError:
        service.metrics.count_switch("refused")
        raise
    if switched:
        service.metrics.count_switch("done")
    manifest = service.worlds.get(name).manifest
    return json_reply(
        {
            "name": name,
            "version": manifest.version,
            "world_id": manifest.world_id,
            "switched": switched,
        }
    )
