"""The engine process: opens the worlds once and answers all processes that serve HTTP.

Started by :class:`world_server.engine_keeper.EngineKeeper`, which holds the other end of the
descriptor ``--parent``: READY or ERROR goes out there, and its end is the order to stop. Signals
are left to the parent, for those who serve HTTP must not lose the engine before they are done.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import uvloop

from world_core.errors import WorldError
from world_server import logs
from world_server.collector import calm_collector
from world_server.engine_protocol import Kind, encoded, told
from world_server.engine_server import EngineServer
from world_server.frames import Frame, FrameSocket
from world_server.problems import contained
from world_server.settings import Settings, load
from world_server.worlds import Worlds, open_worlds, opener_for

EXIT_UNUSABLE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the worlds of the settings in the environment and serve them until the parent ends.

    Returns:
        0, or 2 when the worlds cannot be served; the parent is told why.
    """
    parser = argparse.ArgumentParser(prog="engine_process")
    parser.add_argument("--socket", type=Path, required=True, help="path to listen at")
    parser.add_argument("--parent", type=int, required=True, help="descriptor of the parent")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = FrameSocket(socket.socket(fileno=options.parent))
    settings = load({}, os.environ)
    logs.configure(settings.log_level)
    try:
        worlds = open_worlds(settings.worlds, opener_for(settings, verify=settings.verify))
    except WorldError as error:
        with suppress(BrokenPipeError):
            parent.send(Frame(0, Kind.ERROR, encoded(told(error))))
        return EXIT_UNUSABLE
    calm_collector()
    uvloop.run(_serve(worlds, settings, options.socket, parent))
    return 0


async def _serve(worlds: Worlds, settings: Settings, path: Path, parent: FrameSocket) -> None:
    """Serve until the parent ends; answer what was taken by then."""
    server = EngineServer(worlds)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(parent.fileno(), ended.set)
    await server.listen(path)
    following = asyncio.create_task(follow(server, settings.watch_s))
    try:
        parent.send(Frame(0, Kind.READY))
        await ended.wait()
    except BrokenPipeError:
        pass  # the parent ended while the worlds were opened
    finally:
        asyncio.get_running_loop().remove_reader(parent.fileno())
        following.cancel()
        await asyncio.wait([following])
        await server.close()
        await worlds.close()
        _remove(path)


def _remove(path: Path) -> None:
    """Take the socket and its folder away, by which askers see that no engine will come."""
    with suppress(OSError):  # the parent may have done so
        path.unlink()
    with suppress(OSError):
        path.parent.rmdir()


async def follow(server: EngineServer, seconds: float) -> None:
    """Look at the pointers of the worlds again and again, and switch where they moved."""
    while True:
        await asyncio.sleep(seconds)
        for name in server.worlds.names:
            await contained(_refresh(server, name), f"world {name} was not switched")


async def _refresh(server: EngineServer, name: str) -> None:
    try:
        switched = await server.refresh(name)
    except (WorldError, OSError):
        server.count_switch("refused")
        raise
    if switched:
        server.count_switch("done")


if __name__ == "__main__":
    sys.exit(main())
