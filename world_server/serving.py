"""Serving: the socket, the web server, and one process or several."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

from fastapi import FastAPI
from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE

from world_core.errors import WorldError
from world_server import logs
from world_server.app import create_app
from world_server.collector import calm_collector
from world_server.engine_keeper import EngineKeeper
from world_server.engine_remote import RemoteWorlds
from world_server.errors import SettingsError
from world_server.keys import KeyRing, check_exposure
from world_server.settings import CONFIG_ENV, ENV_PREFIX, Settings, load
from world_server.supervisor import Supervisor
from world_server.worlds import Worlds, open_worlds, opener_for

BACKLOG = 8192
"""Connections the system may hold before they are accepted; it cuts this to its own limit."""

ENGINE_ENV = ENV_PREFIX + "ENGINE_SOCKET"
"""Where a worker finds the socket of the engine process; set by its parent."""

DOORS = 16
"""Connections accepted in one turn of the event loop."""

_LOG = logging.getLogger(__name__)


def bind(settings: Settings) -> socket.socket:
    """Return a socket bound to host and port, not yet listening.

    Raises:
        SettingsError: the port is in use, or the address is not one of this machine.
    """
    check_exposure(
        settings.host,
        KeyRing(settings.keys, keys_file=settings.keys_file),
        allow_no_key=settings.allow_no_key,
    )
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        raise SettingsError(
            f"Cannot listen on {settings.host} port {settings.port} ({error.strerror or error}).",
            hint=f"Choose another: --port {settings.port % 65535 + 1}.",
        ) from error
    return bound


def listen(bound: socket.socket) -> str:
    """Let clients connect, who then wait for the first answer, and return the http address."""
    bound.listen(BACKLOG)
    return address_of(bound)


def address_of(bound: socket.socket) -> str:
    """Return the http address of a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve_here(worlds: Worlds, settings: Settings, bound: socket.socket) -> int:
    """Serve open worlds from this process until it is told to end; return the exit code."""
    return run_app(create_app(worlds, settings), settings, bound)


def run_app(app: FastAPI, settings: Settings, bound: socket.socket) -> int:
    """Run an app of :func:`world_server.app.create_app` on a bound socket."""
    server = Server(_config(app, settings))
    calm_collector()

    def end(number: int, _frame: FrameType | None) -> None:
        # uvicorn raises the signal again when it is done; by then there is nothing left to end.
        if not server.should_exit:
            raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=_doors(bound))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def serve_workers(settings: Settings, bound: socket.socket) -> int:
    """Serve from several processes on one socket; return the exit code.

    The worlds are open in one engine process behind them, or in each of them, as ``engine`` says.
    The processes are spawned, never forked: neither Java nor FAISS survives a fork.

    Raises:
        WorldError: the engine process cannot serve, or ended again and again.
    """
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        if name[len(ENV_PREFIX) :].lower() in _NAMES or name == CONFIG_ENV:
            del os.environ[name]
    os.environ.update(settings.to_environment())
    config = _config("world_server.serving:worker_app", settings)
    engine = None
    if settings.has_engine_process:
        engine = EngineKeeper()
        os.environ[ENGINE_ENV] = str(engine.address)
    return Supervisor(config, sockets=_doors(bound), engine=engine).serve()


def worker_app() -> FastAPI:
    """Return the app of a worker, with the settings its parent left in the environment."""
    settings = load({}, os.environ)
    logs.configure(settings.log_level)
    try:
        app = create_app(_worker_worlds(settings), settings)
    except WorldError as error:
        _LOG.critical("this worker cannot serve: %s", error)
        sys.exit(STARTUP_FAILURE)
    calm_collector()
    return app


def _worker_worlds(settings: Settings) -> Worlds:
    """Return the worlds of the engine process, or open them here."""
    if settings.has_engine_process:
        # Without a parent there is nobody to serve for.
        return RemoteWorlds(
            Path(os.environ[ENGINE_ENV]), abandoned=lambda: os.kill(os.getpid(), signal.SIGTERM)
        )
    return open_worlds(settings.worlds, opener_for(settings, verify=settings.verify))


def _doors(bound: socket.socket) -> list[socket.socket]:
    """Return the listening socket under several descriptors.

    libuv accepts one connection a descriptor and turn of its loop: when thousands connect at once
    and turns are long, the last would be let in after the first are long done.
    """
    return [bound, *(bound.dup() for _ in range(DOORS - 1))]


_NAMES = frozenset(row.name for row in dataclasses.fields(Settings))


def _config(app: FastAPI | str, settings: Settings) -> Config:
    return Config(
        app,
        factory=isinstance(app, str),
        workers=settings.workers,
        loop="uvloop",
        http="world_server.protocol:GuardedProtocol",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=settings.keep_alive_s,
        timeout_graceful_shutdown=settings.graceful_s,
    )
