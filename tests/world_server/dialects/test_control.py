from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.world_server.conftest import Starter
from tests.world_server.test_worlds import Shelf, pointed
from world_server.app import create_app
from world_server.settings import Settings
from world_server.worlds import open_worlds

CONTROL = {"X-API-KEY": "boss"}


async def test_a_switch_follows_the_pointer(tmp_path: Path) -> None:
    worlds = open_worlds([str(pointed(tmp_path, "v1"))], Shelf())
    app = create_app(worlds, Settings(control_key="boss"))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        same = await client.post("/v1/worlds/atlas/switch", headers=CONTROL)
        assert (same.status_code, same.json()["switched"], same.json()["version"]) == (
            200,
            False,
            "v1",
        )
        pointed(tmp_path, "v2")
        done = await client.post("/v1/worlds/atlas/switch", headers=CONTROL)
        assert (done.json()["switched"], done.json()["version"]) == (True, "v2")
        pointed(tmp_path, "bad")
        for _ in range(2):
            bad = await client.post("/v1/worlds/atlas/switch", headers=CONTROL)
            assert (bad.status_code, bad.json()["code"]) == (503, "damaged_file")
        assert (await client.get("/info")).json()["worlds"][0]["version"] == "v2"
        text = (await client.get("/metrics")).text
        assert 'world_switches_total{result="done"} 1' in text
        assert 'world_switches_total{result="refused"} 2' in text
    await worlds.close()


@pytest.mark.parametrize("headers", [{}, {"X-API-KEY": "user"}, {"X-API-KEY": "other"}])
async def test_only_the_control_key_opens_it(start: Starter, headers: dict[str, str]) -> None:
    client = start(keys=("user",), control_key="boss").client
    reply = await client.post("/v1/worlds/stub/switch", headers=headers)
    assert reply.status_code == 401
    in_query = await client.post("/v1/worlds/stub/switch?api_key=user")
    assert in_query.status_code == 401


async def test_without_a_control_key_it_is_closed_to_all(start: Starter) -> None:
    client = start().client
    for key in ("", "any"):
        reply = await client.post("/v1/worlds/stub/switch", headers={"X-API-KEY": key})
        assert reply.status_code == 401


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/worlds/other/switch", 404),
        ("/v1/worlds/../stub/switch", 404),
        ("/v1/worlds/%2e%2e/switch", 404),
        ("/v1/worlds/stub%00/switch", 404),
        ("/v1/worlds/CON/switch", 404),
        ("/v1/worlds/" + "a" * 300 + "/switch", 404),
    ],
)
async def test_a_world_is_only_looked_up_by_name(start: Starter, path: str, status: int) -> None:
    reply = await start(control_key="boss").client.post(path, headers=CONTROL)
    assert reply.status_code == status


async def test_outcomes_are_shown_to_the_control_key_only(start: Starter) -> None:
    client = start(control_key="boss").client
    body = {"url": "https://nowhere.example/"}
    shown = await client.post("/v1/fetch", json=body, headers=CONTROL)
    assert shown.headers["x-world-outcome"] == "not_in_world"
    bad = await client.post("/search", json={}, headers=CONTROL)
    assert bad.headers["x-world-outcome"] == "bad_request"
    hidden = await client.post("/v1/fetch", json=body, headers={"X-API-KEY": "agent"})
    assert "x-world-outcome" not in hidden.headers
