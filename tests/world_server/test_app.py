from __future__ import annotations

import asyncio

import pytest

from tests.world_server.conftest import Running, Starter
from tests.world_server.stub import StubEngine
from world_client.local import local_client
from world_client.wire import SearchRequest


async def test_unknown_paths_and_methods_are_problems(running: Running) -> None:
    nowhere = await running.client.get("/nothing")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "no_route")
    wrong = await running.client.get("/v1/search")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["code"] == "wrong_method"
    serper = await running.client.delete("/search")
    assert (serper.status_code, serper.json()["statusCode"]) == (405, 405)


@pytest.mark.parametrize("path", ["/search?q=x", "/v1/search", "/", "/https://a.example/", "/info"])
async def test_an_unknown_world_is_404(running: Running, path: str) -> None:
    method = "POST" if path == "/v1/search" else "GET"
    reply = await running.client.request(
        method, f"/w/other{path}", content=b'{"query": "x"}', headers={"Accept": "application/json"}
    )
    if path in {"/", "/info"}:
        assert reply.status_code == 200  # what is said about the whole server
    else:
        assert reply.status_code == 404


async def test_worlds_are_met_by_name_and_the_first_plainly(start: Starter) -> None:
    first, second = StubEngine(0.0), StubEngine(0.0)
    first.label, second.label = "first", "second"
    running = start(engine=first, names=("a", "b"))
    running.service.worlds.get("b").engine = second
    plain = await running.client.post("/v1/search", json={"query": "x", "count": 1})
    named = await running.client.post("/w/b/v1/search", json={"query": "x", "count": 1})
    again = await running.client.get("/w/a/search?q=x&num=1")
    assert plain.json()["hits"][0]["snippet"] == "first"
    assert named.json()["hits"][0]["snippet"] == "second"
    assert again.json()["organic"][0]["snippet"] == "first"


async def test_head_is_answered_as_get(running: Running) -> None:
    assert (await running.client.head("/health")).status_code == 200


async def test_the_shipped_client_speaks_to_it(running: Running) -> None:
    async with local_client(running.app) as client:
        found = await client.search("x", count=2)
        assert [hit.rank for hit in found.hits] == [1, 2]
        page = await client.fetch("https://site1.example/page/1")
        assert page.title == "Page 1"
        batch = await client.search_batch([SearchRequest(query="a"), SearchRequest(query="b")])
        assert [answer.query for answer in batch] == ["a", "b"]


async def test_waiting_then_503_with_retry_after(start: Starter) -> None:
    running = start(engine=StubEngine(0.3), max_running=1, queue_limit=1, wait_s=0.05)
    ask = [asyncio.create_task(running.client.get("/search?q=x")) for _ in range(3)]
    replies = await asyncio.gather(*ask)
    assert sorted(reply.status_code for reply in replies) == [200, 503, 503]
    for reply in replies:
        if reply.status_code == 503:
            assert 1 <= int(reply.headers["retry-after"]) <= 5
            assert "connection" not in reply.headers
            assert reply.json()["statusCode"] == 503
    admission = running.service.admission
    assert (admission.refused, admission.expired) == (1, 1)
    assert (admission.running, admission.waiting) == (0, 0)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/search", b'{"query": "x"}'),
        ("POST", "/search", b'{"q": "x"}'),
        ("GET", "/https://site1.example/page/1", b""),
        ("POST", "/scrape", b'{"url": "https://site1.example/page/1"}'),
    ],
)
async def test_work_that_takes_too_long_is_504(
    start: Starter, method: str, path: str, body: bytes
) -> None:
    running = start(engine=StubEngine(30.0), work_s=0.02)
    reply = await running.client.request(method, path, content=body)
    assert reply.status_code == 504
    assert running.engine.cancelled == 1
    assert running.service.admission.running == 0


async def test_an_engines_own_timeout_is_internal(start: Starter) -> None:
    engine = StubEngine(0.0)
    engine.failure = TimeoutError("inside")
    reply = await start(engine=engine).client.post("/v1/search", json={"query": "x"})
    assert (reply.status_code, reply.json()["code"]) == (503, "internal")


async def test_cors_is_off_and_when_on_a_list(start: Starter) -> None:
    origin = {"Origin": "http://page.example"}
    off = await start().client.get("/health", headers=origin)
    assert "access-control-allow-origin" not in off.headers
    client = start(cors_origins=("http://page.example",)).client
    on = await client.get("/health", headers=origin)
    assert on.headers["access-control-allow-origin"] == "http://page.example"
    assert "access-control-allow-credentials" not in on.headers
    other = await client.get("/health", headers={"Origin": "http://evil.example"})
    assert "access-control-allow-origin" not in other.headers


async def test_the_life_cycle_watches_and_closes(start: Starter) -> None:
    running = start()
    async with running.app.router.lifespan_context(running.app) as state:
        assert state == {"head_limit": 131072, "head_s": 10.0}
        assert (await running.client.get("/health")).status_code == 200
    assert running.engine.closed


async def test_worlds_are_closed_after_a_life_that_failed(start: Starter) -> None:
    running = start()
    with pytest.raises(RuntimeError, match="it ended badly"):
        async with running.app.router.lifespan_context(running.app):
            raise RuntimeError("it ended badly")
    assert running.engine.closed


async def test_a_websocket_is_refused(running: Running) -> None:
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        sent.append(dict(message))  # type: ignore[call-overload]

    scope = {"type": "websocket", "path": "/search", "raw_path": b"/search", "headers": [],
             "query_string": b"", "root_path": "", "scheme": "ws", "subprotocols": []}  # fmt: skip
    await running.app(scope, receive, send)
    assert sent[0]["type"] == "websocket.close"
