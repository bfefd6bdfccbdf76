"""Clients of an app that is served by the stub engine, without sockets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest

from tests.conftest import ROOT
from tests.world_server.stub import StubEngine, manifest
from world_server.app import WorldApp, create_app
from world_server.service import Service
from world_server.settings import Settings
from world_server.worlds import ServedWorld, Worlds


@dataclass
class Running:
    """An app on the stub: ask it by ``client``, look into it by ``service`` and ``engine``."""

    client: httpx.AsyncClient
    engine: StubEngine
    service: Service
    app: WorldApp


Starter = Callable[..., Running]


@pytest.fixture
async def start() -> AsyncIterator[Starter]:
    """Return a function that makes an app with these settings; all are closed after the test."""
    clients: list[httpx.AsyncClient] = []

    def make(
        *, engine: StubEngine | None = None, names: tuple[str, ...] = (), **settings: object
    ) -> Running:
        engine = engine or StubEngine(0.0)
        worlds = Worlds.of(*(ServedWorld(manifest(name), engine) for name in names or ("stub",)))
        app = create_app(worlds, Settings(**settings))  # type: ignore[arg-type]
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000"
        )
        clients.append(client)
        return Running(client, engine, app.state.service, app)

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def running(start: Starter) -> Running:
    """Return an app with the default settings."""
    return start()


@dataclass
class Process:
    """A stub server in a process of its own."""

    port: int
    process: subprocess.Popen[str]


@contextmanager
def stub_process(*, delay: float = 0.05, **settings: object) -> Iterator[Process]:
    """Run the stub server on a free port until the block ends."""
    environment = {f"WORLD_{name.upper()}": str(value) for name, value in settings.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.world_server.stub_server", "--delay", str(delay)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "WORLD_PORT": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("Serving"), process.stderr.read()
        yield Process(int(line.rsplit(":", 1)[1]), process)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()
