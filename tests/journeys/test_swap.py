"""A world is switched under load: no request fails, and each answer is wholly from one world."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.journeys.processes import (
    PLACES,
    children,
    current,
    engine_of,
    eventually,
    open_files,
    publish,
    rows,
)
from tests.support import RunningServer, running_server
from world_core import manifest as manifests
from world_server.app import create_app
from world_server.settings import Settings
from world_server.worlds import open_worlds, opener_for

Reply = tuple[int, bytes]
Asked = tuple[str, str, bytes]
PLAIN = ("--lexical", "tantivy", "--encoder", "tiny")
CLIENTS = 4


def requests() -> list[Asked]:
    """Return requests of every family; batches ask for several pages of one world at once."""
    first, *_ = rows()
    batch = [{"query": f"harbour {place}", "count": 6} for place in PLACES]
    posts = [
        ("/search", {"q": "small lighthouse"}),
        ("/search", [{"q": f"boats {place}"} for place in PLACES]),
        ("/v1/search", {"query": "pilot book edition", "count": 6, "explain": True}),
        ("/v1/search/batch", {"searches": batch}),
        ("/v1/fetch", {"url": first["url"]}),
        ("/scrape", {"url": first["url"], "includeMarkdown": True}),
    ]
    made: list[Asked] = [("POST", path, json.dumps(body).encode()) for path, body in posts]
    return [*made, ("GET", f"/{first['url']}", b"")]


def ask(connection: http.client.HTTPConnection, asked: Asked) -> Reply:
    """Send one request over a kept connection."""
    method, path, body = asked
    connection.request(method, path, body or None, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    return reply.status, reply.read()


@contextlib.contextmanager
def connection_to(server: RunningServer) -> Iterator[http.client.HTTPConnection]:
    """Open a connection that is closed at the end."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    try:
        yield connection
    finally:
        connection.close()


def answers_alone(world: Path) -> list[Reply]:
    """Return the answers of an application that serves nothing but this version."""
    settings = Settings()
    worlds = open_worlds([str(world)], opener_for(settings, verify=True))
    transport = httpx.ASGITransport(create_app(worlds, settings))

    async def answers() -> list[Reply]:
        async with httpx.AsyncClient(transport=transport, base_url="http://alone.invalid") as app:
            replies = [
                await app.request(method, path, content=body) for method, path, body in requests()
            ]
        await worlds.close()
        return [(reply.status_code, reply.content) for reply in replies]

    return asyncio.run(answers())


@dataclass
class Load:
    """Clients that ask without end until told to stop, and what they were told."""

    server: RunningServer
    pause: float
    replies: list[tuple[int, Reply]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self, number: int) -> None:
        asked = requests()
        place = number
        with connection_to(self.server) as connection:
            while not self._stop.is_set():
                place = (place + 1) % len(asked)
                try:
                    self.replies.append((place, ask(connection, asked[place])))
                except (OSError, http.client.HTTPException) as error:
                    self.errors.append(repr(error))
                    connection.close()
                time.sleep(self.pause)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Keep the clients asking inside the block."""
        clients = [threading.Thread(target=self.run, args=(one,)) for one in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            yield
        finally:
            self._stop.set()
            for client in clients:
                client.join()


def point_to(home: Path, version: Path) -> None:
    """Switch a world by its pointer, in one step, as publishing does."""
    part = home / "current.part"
    part.write_text(f"{version.name}\n", encoding="utf-8")
    part.replace(home / "current")


def switches_to(server: RunningServer, version: Path) -> int:
    """Return how often the process that holds the worlds has switched to a version."""
    world_id = manifests.read(version).world_id
    return server.log.read_text("utf-8").count(f"switched pilot to {world_id}")


def holder(server: RunningServer, workers: int) -> int:
    """Return the process that holds the worlds open: with several workers the engine process."""
    if workers == 1:
        return server.process.pid
    engine = engine_of(server.process.pid)
    assert engine is not None
    return engine


@pytest.mark.parametrize(
    ("workers", "switches", "pause"),
    [
        (1, 10, 0.02),
        pytest.param(2, 10, 0.0, marks=pytest.mark.slow),
        pytest.param(1, 50, 0.0, marks=pytest.mark.slow),
    ],
)
def test_no_request_fails_and_none_sees_two_worlds(
    tmp_path: Path, workers: int, switches: int, pause: float
) -> None:
    out = tmp_path / "worlds"
    home = out / "pilot"
    first = publish(out, "pilot", *PLAIN, edition="first")
    flags = ("--watch-s", "0.05", "--workers", str(workers))
    with running_server(tmp_path, "serve", str(home), *flags) as server:
        load = Load(server, pause)
        with load.on():
            # Publishing moves the pointer itself.
            second = publish(out, "pilot", *PLAIN, edition="second")
            assert current(home) == second != first
            for number in range(switches):
                wanted = (second, first)[number % 2]
                if number:
                    point_to(home, wanted)
                times = number // 2 + 1
                eventually(lambda: switches_to(server, wanted) == times, "the switch")  # noqa: B023 - done within the turn
        last, other = (current(home), second if current(home) == first else first)
        pid = holder(server, workers)
        eventually(lambda: not open_files([pid], other), "the files of the old version are let go")
        assert open_files([pid], last)
        assert not open_files(children(server.process.pid), last), "no worker opens a world"
    assert "Traceback" not in server.log.read_text("utf-8")
    wholly = [answers_alone(version) for version in (first, second)]
    assert load.errors == []
    assert {status for _, (status, _) in load.replies} == {200}
    seen = [0, 0]
    for place, reply in load.replies:
        worlds = [answers[place] for answers in wholly]
        assert reply in worlds, (requests()[place], reply)
        seen[worlds.index(reply)] += 1
    assert all(one != another for one, another in zip(*wholly, strict=True))
    assert min(seen) > 0


@pytest.mark.slow
def test_a_bad_version_is_not_switched_to(tmp_path: Path) -> None:
    out = tmp_path / "worlds"
    home = out / "pilot"
    first = publish(out, "pilot", *PLAIN, edition="first")
    with running_server(tmp_path, "serve", str(home), "--watch-s", "0.05") as server:
        before = server.ask("/search", {"q": "lighthouse"}).body
        for name, said in (("gone", "is not a world"), ("../pilot", "names no version folder")):
            (home / "current").write_text(f"{name}\n", encoding="utf-8")
            eventually(lambda: said in server.log.read_text("utf-8"), said)  # noqa: B023 - done within the turn
        assert server.ask("/search", {"q": "lighthouse"}).body == before
        assert server.ask("/ready").status == 200
        point_to(home, first)
        second = publish(out, "pilot", *PLAIN, edition="second")
        eventually(lambda: switches_to(server, second), "the next good version is served")
        assert b"second edition" in server.ask("/search", {"q": "lighthouse"}).body
    log = server.log.read_text("utf-8")
    assert "Traceback" not in log
