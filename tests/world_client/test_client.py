"""The asynchronous client against real sockets: answers, typed failures, retries, pools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.world_client.conftest import Handler, Reply, Request, ScriptedServer
from world_client import (
    BadRequestError,
    ClientError,
    ClientTimeoutError,
    ConnectionFailedError,
    DeadlineError,
    OverloadedError,
    ProtocolError,
    SearchRequest,
    ServerFailedError,
    UnauthorizedError,
    WorldClient,
)
from world_client.pools import MAX_CONNECTIONS

Start = Callable[[Handler], Awaitable[ScriptedServer]]


def reply(content: object, status: int = 200, **headers: str) -> Reply:
    return status, headers, json.dumps(content).encode()


def search_answer(query: str) -> dict[str, Any]:
    hit = {
        "rank": 1,
        "page_id": "0" * 20,
        "url": "https://atlas.example/a",
        "title": "A",
        "snippet": f"about {query}",
        "language": "en",
        "score": 0.5,
    }
    return {"outcome": "ok", "query": query, "hits": [hit]}


def problem(outcome: str, status: int, **headers: str) -> Reply:
    content = {
        "outcome": outcome,
        "code": f"{outcome}_code",
        "message": "It failed.",
        "hint": "H.",
        "trainable": outcome == "bad_request",
    }
    return reply(content, status, **headers)


async def test_search_sends_the_contract_and_parses_the_answer(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        return reply(search_answer(request.body["query"]))

    server = await scripted(handler)
    async with WorldClient(server.url + "/", key="k-1") as client:
        answer = await client.search("lighthouse", count=3, offset=7)
    assert answer.hits[0].snippet == "about lighthouse"
    sent = server.requests[0]
    assert sent.path == "/v1/search"
    assert sent.headers["x-api-key"] == "k-1"
    assert sent.body == {
        "query": "lighthouse",
        "count": 3,
        "offset": 7,
        "mode": "hybrid",
        "explain": False,
        "sitelinks": False,
        "allow_lexical": False,
    }


async def test_fetch_returns_outcomes_as_data(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        return reply({"outcome": "not_in_world", "url": request.body["url"]})

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        answer = await client.fetch("https://nowhere.example/")
    assert answer.outcome == "not_in_world"
    assert answer.text == ""


async def test_batch_keeps_order_and_counts(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        return reply({"answers": [search_answer(one["query"]) for one in request.body["searches"]]})

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        answers = await client.search_batch([SearchRequest(query=q) for q in ("b", "a")])
    assert [answer.query for answer in answers] == ["b", "a"]


async def test_a_short_batch_answer_is_a_protocol_error(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        return reply({"answers": []})

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(ProtocolError, match="2 searches"):
            await client.search_batch([SearchRequest(query=q) for q in ("b", "a")])


@pytest.mark.parametrize(
    ("outcome", "status", "error", "trainable"),
    [
        ("bad_request", 400, BadRequestError, True),
        ("unauthorized", 401, UnauthorizedError, False),
        ("deadline", 504, DeadlineError, False),
        ("internal", 503, ServerFailedError, False),
    ],
)
async def test_each_failed_outcome_has_its_error(
    scripted: Start, outcome: str, status: int, error: type[ClientError], trainable: bool
) -> None:
    async def handler(request: Request) -> Reply:
        return problem(outcome, status)

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(error, match=r"It failed\. H\.") as caught:
            await client.search("q")
    assert caught.value.outcome == outcome
    assert caught.value.code == f"{outcome}_code"
    assert caught.value.trainable is trainable
    assert len(server.requests) == 1, "a failure that cannot heal is not tried again"


async def test_the_server_says_what_a_trainer_may_learn_from(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        content = {"outcome": "bad_request", "code": "no_route", "message": "Nothing is here."}
        return reply(content, 404)

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(BadRequestError) as caught:
            await client.search("q")
    assert caught.value.trainable is False


async def test_an_overloaded_server_is_asked_again_after_its_time(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        if len(server.requests) < 3:
            return problem("overloaded", 503, **{"Retry-After": "0"})
        return reply(search_answer("q"))

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        assert (await client.search("q")).outcome == "ok"
    assert len(server.requests) == 3


async def test_no_wait_goes_past_the_deadline(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        return problem("overloaded", 503, **{"Retry-After": "9"})

    server = await scripted(handler)
    async with WorldClient(server.url, deadline=2.4) as client:
        with pytest.raises(OverloadedError):
            await client.search("q")
    assert len(server.requests) == 1, "the shortest wait of 2.5 s would end after the deadline"


async def test_silence_to_the_deadline_is_a_client_timeout(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        await asyncio.sleep(30)
        return reply({})

    server = await scripted(handler)
    async with WorldClient(server.url, deadline=0.2) as client:
        with pytest.raises(ClientTimeoutError, match=r"0\.2 s"):
            await client.search("q")


async def test_a_503_of_somebody_else_is_a_failure_not_an_empty_answer(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        return 503, {}, b"<html>upstream down</html>"

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(ServerFailedError):
            await client.search("q")


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b'{"outcome":"ok"}'])
async def test_a_200_outside_the_contract_is_a_protocol_error(
    scripted: Start, content: bytes
) -> None:
    async def handler(request: Request) -> Reply:
        return 200, {}, content

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(ProtocolError):
            await client.search("q")


async def test_an_unknown_outcome_is_a_protocol_error(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        return problem("ok", 500)

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(ProtocolError, match="outcome ok"):
            await client.search("q")


async def test_a_closed_idle_connection_is_replaced_once(scripted: Start) -> None:
    async def handler(request: Request) -> Reply | None:
        if request.connection == 1 and len(server.requests) == 2:
            return None
        return reply(search_answer("q"))

    server = await scripted(handler)
    async with WorldClient(server.url, pools=1) as client:
        await client.search("q")
        assert (await client.search("q")).outcome == "ok"
    assert [request.connection for request in server.requests] == [1, 1, 2]


async def test_a_connection_that_always_breaks_is_a_typed_failure(scripted: Start) -> None:
    async def handler(request: Request) -> Reply | None:
        return None

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(ConnectionFailedError, match="broke off"):
            await client.search("q")
    assert len(server.requests) == 2


async def test_no_server_is_a_typed_failure(unused_tcp_port: int) -> None:
    async with WorldClient(f"http://127.0.0.1:{unused_tcp_port}") as client:
        with pytest.raises(ConnectionFailedError, match="Is the server running"):
            await client.search("q")


@pytest.mark.parametrize("fields", [{"query": ""}, {"query": "q", "count": 0}])
async def test_a_malformed_call_never_leaves(scripted: Start, fields: dict[str, Any]) -> None:
    async def handler(request: Request) -> Reply:
        return reply({})

    server = await scripted(handler)
    async with WorldClient(server.url) as client:
        with pytest.raises(BadRequestError):
            await client.search(**fields)
    assert server.requests == []


async def test_cancelled_calls_leave_no_dead_slots(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        await asyncio.sleep(0.02)
        return reply(search_answer("q"))

    server = await scripted(handler)
    async with WorldClient(server.url, pools=1, deadline=10.0) as client:
        for _ in range(20):
            tasks = [asyncio.create_task(client.search("q")) for _ in range(20)]
            await asyncio.sleep(0.005)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        answers = await asyncio.gather(*(client.search("q") for _ in range(5)))
    assert [answer.outcome for answer in answers] == ["ok"] * 5


async def test_many_calls_share_few_connections(scripted: Start) -> None:
    async def handler(request: Request) -> Reply:
        await asyncio.sleep(0.001)
        return reply(search_answer("q"))

    server = await scripted(handler)
    async with WorldClient(server.url, pools=2) as client:
        answers = await asyncio.gather(*(client.search("q") for _ in range(300)))
    assert len(answers) == 300
    assert server.connections <= 2 * MAX_CONNECTIONS
