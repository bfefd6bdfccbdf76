"""Clients of an app that is served by the stub engine, without sockets."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.conftest import ROOT
from tests.world_server.stub import StubEngine, manifest
from world_server.app import WorldApp, create_app
from world_server.service import Service
from world_server.settings import Settings
from world_server.worlds import ServedWorld, Worlds

ROWS = [
    {
        "url": "https://harbor.example/lighthouse",
        "title": "Lighthouse of Alder Point",
        "text": "The tower was lit in 1871. Its first keeper was Ida Brandt, who stayed for years.",
    },
    {
        "url": "https://notes.example/ida-brandt",
        "title": "Ida Brandt",
        "text": "Ida Brandt kept the light at Alder Point and learned to read the sea as a child.",
    },
    {
        "url": "https://ferry.example/timetable",
        "title": "Ferry timetable",
        "text": "The ferry leaves the old pier at nine in the morning and returns at six at night.",
    },
]


@dataclass
class Running:
    """An app on the stub: ask it by ``client``, look into it by ``service`` and ``engine``."""

    client: httpx.AsyncClient
    engine: StubEngine
    service: Service
    app: WorldApp


Starter = Callable[..., Running]


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    """Undo what a test does to the loggers, so that the next one sees its own."""
    names = ("world_server", "uvicorn")
    before = [
        (logger, logger.handlers[:], logger.level, logger.propagate)
        for logger in map(logging.getLogger, names)
    ]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate


@pytest.fixture(scope="session")
def tiny_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a real world of three pages, with the pointer to its version."""
    folder = tmp_path_factory.mktemp("worlds")
    rows = folder / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(row) for row in ROWS))
    subprocess.run(
        [
            *(sys.executable, "-m", "corpus_builder.cli", "build", str(rows), "--name", "tiny"),
            *("--out", str(folder), "--lexical", "tantivy", "--encoder", "tiny", "--workers", "1"),
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return folder / "tiny"


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
