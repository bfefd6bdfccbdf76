from __future__ import annotations

import asyncio
import inspect

import pytest

import world_core.errors
import world_server.errors
from tests.world_server.conftest import Running
from world_client.wire import Outcome
from world_core.errors import (
    BadInputError,
    CancelledCallError,
    EncoderError,
    IndexFailedError,
    MissingPartError,
    PageStoreError,
    WorldError,
)
from world_server.dialects import jina, native, serper
from world_server.errors import (
    BadFieldError,
    BodyTooLargeError,
    ClientLeftError,
    DeadlineError,
    NoRouteError,
    OverloadedError,
    SlowBodyError,
    UnauthorizedError,
    UnknownWorldError,
    WrongMethodError,
)
from world_server.exchange import Reply, Request
from world_server.problems import Problem, answered, contained, problem_of

CASES: list[tuple[WorldError, Outcome, int, str]] = [
    (BadInputError("x"), Outcome.BAD_REQUEST, 400, "bad_request"),
    (BadFieldError("x", field="q"), Outcome.BAD_REQUEST, 400, "bad_request"),
    (BodyTooLargeError("x"), Outcome.BAD_REQUEST, 413, "body_too_large"),
    (SlowBodyError("x"), Outcome.BAD_REQUEST, 408, "slow_body"),
    (UnknownWorldError("x"), Outcome.BAD_REQUEST, 404, "unknown_world"),
    (WrongMethodError("x", allowed=("GET",)), Outcome.BAD_REQUEST, 405, "wrong_method"),
    (NoRouteError("x"), Outcome.BAD_REQUEST, 404, "no_route"),
    (UnauthorizedError("x"), Outcome.UNAUTHORIZED, 401, "unauthorized"),
    (OverloadedError("x", retry_after=3), Outcome.OVERLOADED, 503, "overloaded"),
    (DeadlineError("x"), Outcome.DEADLINE, 504, "deadline"),
    (CancelledCallError("x"), Outcome.DEADLINE, 504, "deadline"),
    (EncoderError("x"), Outcome.INTERNAL, 503, "encoder"),
    (IndexFailedError("x"), Outcome.INTERNAL, 503, "index"),
    (PageStoreError("x"), Outcome.INTERNAL, 503, "page_store"),
    (MissingPartError("x"), Outcome.INTERNAL, 503, "missing_part"),
    (WorldError("x"), Outcome.INTERNAL, 503, "internal"),
]


def request(accept: str = "application/json") -> Request:
    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    headers = [(b"accept", accept.encode())]
    return Request({"method": "GET", "headers": headers, "query_string": b""}, receive)


@pytest.mark.parametrize(("error", "outcome", "status", "code"), CASES)
def test_every_error_has_its_outcome(
    error: WorldError, outcome: Outcome, status: int, code: str
) -> None:
    problem = problem_of(error)
    assert (problem.outcome, problem.status, problem.code) == (outcome, status, code)
    of_setup = {"slow_body", "unknown_world", "wrong_method", "no_route"}
    assert problem.trainable is (outcome is Outcome.BAD_REQUEST and code not in of_setup)
    assert problem.retryable is (
        outcome in (Outcome.OVERLOADED, Outcome.DEADLINE, Outcome.INTERNAL)
    )


def test_the_headers_an_error_needs() -> None:
    assert problem_of(OverloadedError("x", retry_after=3)).headers == (("Retry-After", "3"),)
    assert problem_of(BodyTooLargeError("x")).headers == (("Connection", "close"),)
    assert problem_of(SlowBodyError("x")).headers == (("Connection", "close"),)
    assert problem_of(WrongMethodError("x", allowed=("GET", "POST"))).headers == (
        ("Allow", "GET, POST"),
    )


@pytest.mark.parametrize("render", [native.render, serper.render, jina.render])
@pytest.mark.parametrize(("error", "outcome", "status", "code"), CASES)
async def test_no_dialect_shows_our_failure_as_anything_else(
    render: object, error: WorldError, outcome: Outcome, status: int, code: str
) -> None:
    async def work() -> Reply:
        raise error

    reply = await answered(work(), render, request())  # type: ignore[arg-type]
    assert reply is not None
    assert reply.outcome == outcome.value
    if outcome is not Outcome.UNAUTHORIZED:
        assert reply.status == status
    assert reply.headers.get("Retry-After") == ("3" if outcome is Outcome.OVERLOADED else None)


async def test_a_wrong_address_teaches_nothing(running: Running) -> None:
    for method, path in (("GET", "/nothing"), ("GET", "/v1/search"), ("POST", "/w/no/v1/search")):
        reply = await running.client.request(method, path, content=b'{"query": "x"}')
        assert reply.json()["outcome"] == "bad_request"
        assert reply.json()["trainable"] is False
    reply = await running.client.post("/v1/search", json={"query": 7})
    assert reply.json()["trainable"] is True


async def test_an_unforeseen_error_is_internal_and_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> Reply:
        raise ZeroDivisionError("secret detail")

    reply = await answered(work(), native.render, request())
    assert reply is not None
    assert reply.status == 503
    assert b'"code":"internal"' in reply.body
    assert b"secret detail" not in reply.body


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (WorldError("It is bad."), "a look: It is bad."),
        (PermissionError(13, "denied"), "a look: [Errno 13] denied"),
        (ZeroDivisionError("x"), "a look: an error nobody foresaw"),
    ],
)
async def test_a_task_that_must_live_on_is_told_what_failed(
    failure: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        raise failure

    await contained(work(), "a look")
    assert [record.message for record in caplog.records] == [said]


async def test_a_task_that_must_live_on_can_be_cancelled() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await contained(work(), "a look")


async def test_a_client_that_left_gets_no_reply() -> None:
    async def work() -> Reply:
        raise ClientLeftError("x")

    assert await answered(work(), native.render, request()) is None


async def test_a_cancellation_is_not_swallowed() -> None:
    async def work() -> Reply:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await answered(work(), native.render, request())


async def test_a_good_reply_passes_untouched() -> None:
    given = Reply(b"x", 200)

    async def work() -> Reply:
        return given

    assert await answered(work(), native.render, request()) is given


def test_every_error_class_of_both_trees_makes_a_problem() -> None:
    for module in (world_core.errors, world_server.errors):
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if not issubclass(kind, WorldError) or kind is ClientLeftError:
                continue
            wanted: dict[str, object] = {}
            if issubclass(kind, OverloadedError):
                wanted = {"retry_after": 1}
            elif issubclass(kind, WrongMethodError):
                wanted = {"allowed": ("GET",)}
            problem = problem_of(kind("A sentence.", **wanted))  # type: ignore[arg-type]
            assert isinstance(problem, Problem)
            assert 400 <= problem.status <= 504
