from __future__ import annotations

from typing import Any

import pytest

from tests.world_server.conftest import Running, Starter
from tests.world_server.stub import StubEngine
from world_server.exchange import Message, Receive


def scope(path: str, method: str = "POST", **headers: str) -> dict[str, Any]:
    rows = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": rows, "root_path": "", "http_version": "1.1",
        "scheme": "http",
    }  # fmt: skip


def client(body: bytes, *, leaves: bool) -> tuple[Receive, list[str]]:
    """Return a ``receive`` that hands over a body and then says that the client left."""
    asked: list[str] = []

    async def receive() -> Message:
        asked.append("receive")
        if len(asked) == 1:
            return {"type": "http.request", "body": body, "more_body": False}
        assert leaves
        return {"type": "http.disconnect"}

    return receive, asked


async def send_nothing(message: Message) -> None:
    pytest.fail(f"sent {message['type']} to a client that left")


async def test_a_client_that_left_is_sent_nothing_and_counted(start: Starter) -> None:
    running = start(engine=StubEngine(5.0))
    receive, _ = client(b'{"q": "x"}', leaves=True)
    await running.app(scope("/search"), receive, send_nothing)
    assert running.engine.cancelled == 1
    assert running.service.metrics.client_left == 1
    text = (await running.client.get("/metrics")).text
    assert 'world_requests_total{route="serper_search",outcome="client_left"} 1' in text
    assert "world_client_left_total 1" in text


async def test_a_client_that_leaves_with_its_body_half_sent_is_counted_too(
    running: Running,
) -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    await running.app(scope("/search", content_length="100"), receive, send_nothing)
    assert running.service.metrics.client_left == 1
    assert running.engine.begun == 0


async def test_a_refused_key_leaves_the_body_unread(start: Starter) -> None:
    running = start(keys=("good",))
    receive, asked = client(b"x", leaves=False)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await running.app(scope("/search"), receive, send)
    assert sent[0]["status"] == 403
    assert asked == []


async def test_the_query_string_of_a_jina_target_opens_nothing(start: Starter) -> None:
    client_ = start(keys=("good",)).client
    assert (await client_.get("/https://a.example/?api_key=good")).status_code == 401
    assert (await client_.get("/search?q=x&api_key=good")).status_code == 200


async def test_every_reply_says_what_it_is(running: Running) -> None:
    for path in ("/", "/health", "/info", "/nothing", "/metrics", "/search", "/openapi.json"):
        reply = await running.client.get(path)
        assert reply.headers["content-type"]
        assert int(reply.headers["content-length"]) == len(reply.content)
        if path != "/openapi.json":
            assert reply.headers["x-content-type-options"] == "nosniff"
