"""The engine process itself, over a real world."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world_server.test_worlds import Shelf, pointed
from world_core.errors import ForeignWorldError
from world_core.types import FetchCall, Mode, SearchCall
from world_server.engine_keeper import EngineKeeper
from world_server.engine_process import follow
from world_server.engine_remote import RemoteWorlds
from world_server.engine_server import EngineServer
from world_server.settings import ENV_PREFIX, Settings
from world_server.worlds import open_worlds, opener_for

CALLS = [
    SearchCall(query, count=count, mode=mode)
    for query in ("ferry", "light keeper", "Ida Brandt", "zzz")
    for count in (1, 3)
    for mode in Mode
]


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineKeeper]:
    """Return a keeper that inherits no setting from outside."""
    for name in list(os.environ):
        if name.startswith(ENV_PREFIX):
            monkeypatch.delenv(name)
    made = EngineKeeper()
    yield made
    made.stop(lambda: True)


def serve(keeper: EngineKeeper, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    for name, value in settings.to_environment().items():
        monkeypatch.setenv(name, value)
    assert keeper.start(lambda: False)


async def test_it_answers_as_an_engine_here(
    tiny_world: Path, keeper: EngineKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(worlds=(str(tiny_world),), engine_threads=2)
    serve(keeper, monkeypatch, settings)
    assert keeper.pid is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(keeper.pid, number)  # these are for its parent
    here = open_worlds(settings.worlds, opener_for(settings, verify=True))
    there = RemoteWorlds(keeper.address, abandoned=lambda: None)
    await there.start()
    assert there.names == here.names
    assert there.get().manifest == here.get().manifest
    answers = await here.get().engine.search(CALLS)
    assert await there.get().engine.search(CALLS) == answers
    alone = await asyncio.gather(*(there.get().engine.search([call]) for call in CALLS))
    assert [one[0] for one in alone] == answers
    for url in ("https://ferry.example/timetable", "https://nowhere.example/"):
        page = FetchCall(url)
        assert await there.get().engine.fetch(page) == await here.get().engine.fetch(page)
    await there.close()
    await here.close()
    process = keeper._process
    assert process is not None
    await asyncio.to_thread(keeper.stop, lambda: False)
    assert process.returncode == 0


def test_it_says_why_it_cannot_serve(
    tmp_path: Path, keeper: EngineKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ForeignWorldError, match="is not a world"):
        serve(keeper, monkeypatch, Settings(worlds=(str(tmp_path),)))
    process = keeper._process
    assert process is not None
    assert process.wait() == 2


async def test_it_follows_the_pointers_and_outlives_a_bad_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf()
    server = EngineServer(open_worlds([str(pointed(tmp_path, "v1"))], shelf))
    following = asyncio.create_task(follow(server, 0.01))
    for version in ("v2", "bad", "v3"):
        pointed(tmp_path, version)
        async with asyncio.timeout(10):
            while shelf.opened[-1] != version:  # noqa: ASYNC110 - another task's work
                await asyncio.sleep(0.01)
    async with asyncio.timeout(10):
        while server.worlds.get().manifest.version != "v3":  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.01)
    following.cancel()
    await asyncio.wait([following])
    assert "world atlas was not switched" in caplog.text
    await server.worlds.close()
