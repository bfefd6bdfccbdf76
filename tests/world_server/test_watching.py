from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from pathlib import Path

import pytest

from tests.world_server.stub import manifest
from tests.world_server.test_worlds import Shelf, pointed
from world_server.app import create_app
from world_server.metrics import render
from world_server.settings import Settings
from world_server.watching import look_once, watch
from world_server.worlds import ServedWorld, open_worlds


async def test_a_look_follows_the_pointer_and_counts(tmp_path: Path) -> None:
    shelf = Shelf()
    worlds = open_worlds([str(pointed(tmp_path, "v1"))], shelf)
    service = create_app(worlds, Settings()).state.service
    await look_once(service)
    pointed(tmp_path, "v2")
    await look_once(service)
    assert worlds.get().manifest == manifest("atlas", version="v2")
    pointed(tmp_path, "bad")
    await look_once(service)
    (tmp_path / "atlas" / "current").write_text("../v2")
    await look_once(service)
    assert worlds.get().manifest.version == "v2"
    text = render(service.counts()).decode()
    assert 'world_switches_total{result="done"} 1' in text
    assert 'world_switches_total{result="refused"} 2' in text
    await worlds.close()


async def test_a_look_reads_changed_keys_and_survives_a_lost_file(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("old\n")
    worlds = open_worlds([str(pointed(tmp_path, "v1"))], Shelf())
    service = create_app(worlds, Settings(keys_file=str(keys))).state.service
    keys.write_text("newer\n")
    os.utime(keys, ns=(1, 1))
    await look_once(service)
    assert service.keys.opens("newer")
    assert not service.keys.opens("old")
    keys.unlink()
    await look_once(service)
    assert service.keys.opens("newer")
    await worlds.close()


@pytest.mark.parametrize("failure", [PermissionError(13, "no"), RuntimeError("a library failed")])
async def test_no_error_ends_the_task(
    tmp_path: Path, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf()
    failures = [failure]

    def opener(folder: Path) -> ServedWorld:
        if folder.name == "v2" and failures:
            raise failures.pop()
        return shelf(folder)

    worlds = open_worlds([str(pointed(tmp_path, "v1"))], opener)
    service = create_app(worlds, Settings(watch_s=0.01)).state.service
    with caplog.at_level(logging.ERROR, logger="world_server"):
        task = asyncio.create_task(watch(service))
        for version in ("v2", "v3"):
            pointed(tmp_path, version)
            async with asyncio.timeout(5):
                while failures:  # noqa: ASYNC110 - another task's work
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            while worlds.get().manifest.version != "v3":  # noqa: ASYNC110 - another task's work
                await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert "world atlas was not switched" in caplog.text
    await worlds.close()


async def test_the_task_looks_again_and_again(tmp_path: Path) -> None:
    worlds = open_worlds([str(pointed(tmp_path, "v1"))], Shelf())
    service = create_app(worlds, Settings(watch_s=0.01)).state.service
    task = asyncio.create_task(watch(service))
    for version in ("v2", "v3"):
        pointed(tmp_path, version)
        async with asyncio.timeout(5):
            while worlds.get().manifest.version != version:  # noqa: ASYNC110 - another task's work
                await asyncio.sleep(0.01)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await worlds.close()
