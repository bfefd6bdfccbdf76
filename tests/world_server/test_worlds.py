from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from pathlib import Path

import httpx
import pytest

from tests.world_server.conftest import Starter
from tests.world_server.stub import StubEngine, manifest, served
from world_core.errors import BadWorldError, DamagedFileError, ForeignWorldError
from world_server.app import create_app
from world_server.errors import SettingsError, UnknownWorldError
from world_server.pointer import WorldFolder
from world_server.settings import Settings
from world_server.worlds import ServedWorld, Worlds, open_worlds


class Shelf:
    """Opens folders as stub worlds: the folder's name is the version, ``bad`` cannot be served."""

    def __init__(self) -> None:
        self.engines: dict[str, StubEngine] = {}
        self.opened: list[str] = []

    def __call__(self, folder: Path) -> ServedWorld:
        self.opened.append(folder.name)
        if folder.name.startswith("bad"):
            raise DamagedFileError(f"'passages.bin' of world {folder} differs.")
        name = "other" if folder.name.startswith("other") else folder.parent.name
        self.engines[folder.name] = StubEngine(0.0)
        self.engines[folder.name].label = folder.name
        return ServedWorld(manifest(name, version=folder.name), self.engines[folder.name])

    @property
    def closed(self) -> list[str]:
        return [name for name, engine in self.engines.items() if engine.closed]


def pointed(tmp_path: Path, version: str, name: str = "atlas") -> Path:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "current").write_text(version)
    return folder


def test_the_first_world_is_the_plain_one() -> None:
    worlds = Worlds.of(served("b"), served("a"))
    assert worlds.names == ["b", "a"]
    assert worlds.get().manifest.name == "b"
    assert worlds.get("a").manifest.name == "a"


@pytest.mark.parametrize("name", ["c", "../b", "", "CON", "b\0", "b" * 300])
def test_a_name_is_only_looked_up(name: str) -> None:
    worlds = Worlds.of(served("b"))
    if name == "":
        assert worlds.get(name)
        return
    with pytest.raises(UnknownWorldError):
        worlds.get(name)


def test_two_worlds_of_one_name_are_refused() -> None:
    with pytest.raises(SettingsError, match="Two worlds are named 'a'"):
        Worlds.of(served("a"), served("a"))


def test_nothing_to_serve_is_refused() -> None:
    with pytest.raises(SettingsError, match="No world to serve"):
        open_worlds([], Shelf())


def test_a_bad_world_keeps_its_place_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="world_server"):
        worlds = open_worlds([str(tmp_path / "bad"), str(tmp_path / "b" / "v1")], Shelf())
    assert worlds.names == ["bad", "b"]
    assert [world.manifest.name for world in worlds.opened] == ["b"]
    assert "passages.bin" in caplog.text
    for name in ("", "bad"):
        with pytest.raises(
            BadWorldError, match=r"'bad' cannot be served \(damaged_file\)"
        ) as caught:
            worlds.get(name)
        assert caught.value.code == "bad_world"
        assert str(tmp_path) not in str(caught.value)
    assert worlds.get("b").manifest.name == "b"


def test_a_good_world_has_its_name_before_a_bad_one(tmp_path: Path) -> None:
    arguments = [*(tmp_path / part / "bad" for part in ("1", "2")), tmp_path / "bad" / "v1"]
    worlds = open_worlds([str(argument) for argument in arguments], Shelf())
    assert worlds.names == ["bad#2", "bad#3", "bad"]
    assert worlds.get("bad").manifest.version == "v1"
    with pytest.raises(BadWorldError):
        worlds.get()


async def test_nobody_answers_for_a_world_that_could_not_be_opened(tmp_path: Path) -> None:
    worlds = open_worlds([str(pointed(tmp_path, "bad")), str(tmp_path / "b" / "v1")], Shelf())
    app = create_app(worlds, Settings(ready_s=0.01))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        for prefix in ("", "/w/atlas"):
            refused = await client.post(f"{prefix}/v1/search", json={"query": "x"})
            problem = refused.json()
            assert refused.status_code == 503
            assert (problem["outcome"], problem["code"]) == ("internal", "bad_world")
            serper = await client.get(f"{prefix}/search?q=x")
            assert (serper.status_code, serper.json()["statusCode"]) == (503, 503)
            page = await client.get(f"{prefix}/https://site1.example/page/1")
            assert page.status_code == 503
        assert (await client.post("/w/b/v1/search", json={"query": "x"})).status_code == 200
        ready = await client.get("/ready")
        assert ready.status_code == 503
        assert ready.json()["worlds"] == {
            "atlas": "bad_world: The world 'atlas' cannot be served (damaged_file).",
            "b": "ok",
        }
        assert [one["name"] for one in (await client.get("/info")).json()["worlds"]] == ["b"]
        pointed(tmp_path, "v2")
        assert await worlds.refresh("atlas")
        assert (await client.post("/v1/search", json={"query": "x"})).status_code == 200
    await worlds.close()


def test_only_bad_worlds_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match=r"passages\.bin"):
        open_worlds([str(tmp_path / "bad1"), str(tmp_path / "bad2")], Shelf())


def test_the_only_world_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.ERROR, logger="world_server"),
        pytest.raises(DamagedFileError, match=r"passages\.bin"),
    ):
        open_worlds([str(tmp_path / "bad")], Shelf())
    assert caplog.text == ""


async def test_the_pointer_switches_and_the_old_world_closes_after_its_last_call(
    tmp_path: Path,
) -> None:
    shelf = Shelf()
    folder = pointed(tmp_path, "v1")
    worlds = open_worlds([str(folder)], shelf)
    assert not await worlds.refresh("atlas")
    old = worlds.get("atlas")
    with old.lease():
        pointed(tmp_path, "v2")
        assert await worlds.refresh("atlas")
        assert worlds.get().manifest.version == "v2"
        await asyncio.sleep(0.01)
        assert shelf.closed == []
    await asyncio.sleep(0.01)
    assert shelf.closed == ["v1"]
    await worlds.close()
    assert shelf.closed == ["v1", "v2"]


async def test_a_bad_version_is_tried_once_and_the_old_one_stays(tmp_path: Path) -> None:
    shelf = Shelf()
    worlds = open_worlds([str(pointed(tmp_path, "v1"))], shelf)
    pointed(tmp_path, "bad")
    with pytest.raises(DamagedFileError):
        await worlds.refresh("atlas")
    assert not await worlds.refresh("atlas")
    assert shelf.opened == ["v1", "bad"]
    assert worlds.get().manifest.version == "v1"
    pointed(tmp_path, "v3")
    assert await worlds.refresh("atlas")
    assert worlds.get().manifest.version == "v3"
    await worlds.close()


async def test_a_refused_version_is_tried_again_when_it_may_be_good(tmp_path: Path) -> None:
    shelf, now, broken = Shelf(), [100.0], [True]

    def opener(folder: Path) -> ServedWorld:
        if broken[0]:
            shelf.opened.append(folder.name)
            raise RuntimeError("a library failed")
        return shelf(folder)

    folder = pointed(tmp_path, "v2")
    (folder / "v2").mkdir()
    worlds = Worlds(opener, clock=lambda: now[0])
    worlds.add(served("atlas"), WorldFolder(folder), folder / "v1")
    tries = 0

    async def is_tried(*, again: bool = False) -> bool:
        nonlocal tries
        with contextlib.suppress(RuntimeError):
            assert not await worlds.refresh("atlas", again=again)
        before, tries = tries, len(shelf.opened)
        return tries > before

    assert await is_tried()
    assert not await is_tried()
    assert await is_tried(again=True)
    (folder / "v2" / "manifest.json").write_text("{}")
    assert await is_tried()
    os.utime(folder / "v2" / "manifest.json", ns=(1, 1))
    assert await is_tried()
    now[0] += 29.0
    assert not await is_tried()
    now[0] += 1.0
    assert await is_tried()
    broken[0] = False
    assert await worlds.refresh("atlas", again=True)
    assert worlds.get().manifest.version == "v2"
    assert not await worlds.refresh("atlas", again=True)
    await worlds.close()


async def test_another_world_behind_the_pointer_is_refused_and_closed(tmp_path: Path) -> None:
    shelf = Shelf()
    worlds = open_worlds([str(pointed(tmp_path, "v1"))], shelf)
    pointed(tmp_path, "other1")
    with pytest.raises(ForeignWorldError, match="holds the world 'other', not 'atlas'"):
        await worlds.refresh("atlas")
    assert shelf.closed == ["other1"]
    assert worlds.get().manifest.version == "v1"
    await worlds.close()


async def test_switches_asked_for_at_once_happen_once(tmp_path: Path) -> None:
    shelf = Shelf()
    worlds = open_worlds([str(pointed(tmp_path, "v1"))], shelf)
    pointed(tmp_path, "v2")
    done = await asyncio.gather(*(worlds.refresh("atlas") for _ in range(5)))
    assert sorted(done) == [False, False, False, False, True]
    assert shelf.opened == ["v1", "v2"]
    await worlds.close()


async def test_an_open_world_has_nothing_to_switch_to() -> None:
    worlds = Worlds.of(served("a"))
    assert not await worlds.refresh("a")
    with pytest.raises(UnknownWorldError):
        await worlds.refresh("b")


def test_a_registry_of_open_worlds_opens_none(tmp_path: Path) -> None:
    worlds = Worlds.of(served("a"))
    worlds.add(served("b"), WorldFolder(pointed(tmp_path, "v1")), tmp_path)
    with pytest.raises(BadWorldError, match="cannot be opened"):
        asyncio.run(worlds.refresh("b"))


async def test_fifty_switches_under_load_fail_no_request(tmp_path: Path, start: Starter) -> None:
    """Every answer comes from one version: its stub names it in every snippet."""
    shelf = Shelf()
    folder = pointed(tmp_path, "v0")
    worlds = open_worlds([str(folder)], shelf)
    running = start()
    app = create_app(worlds, Settings(max_running=64))
    running.client._transport = type(running.client._transport)(app=app)  # type: ignore[call-arg]
    statuses: list[int] = []
    seen: list[set[str]] = []
    stop = asyncio.Event()

    async def asker() -> None:
        while not stop.is_set():
            reply = await running.client.post("/v1/search", json={"query": "x", "count": 3})
            statuses.append(reply.status_code)
            seen.append({found["snippet"] for found in reply.json()["hits"]})
            await asyncio.sleep(0.001)

    askers = [asyncio.create_task(asker()) for _ in range(4)]
    for number in range(1, 51):
        pointed(tmp_path, f"v{number}")
        assert await worlds.refresh("atlas")
        await asyncio.sleep(0.002)
    stop.set()
    await asyncio.gather(*askers)
    assert set(statuses) == {200}
    assert len(statuses) > 50
    assert {len(versions) for versions in seen} == {1}
    assert len(set.union(*seen)) > 10
    await asyncio.sleep(0.01)
    assert len(shelf.closed) == 50
    assert sum(engine.begun for engine in shelf.engines.values()) == len(statuses)
    await worlds.close()
