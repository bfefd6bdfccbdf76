from __future__ import annotations

import asyncio

import pytest

from tests.world_server.conftest import Starter
from tests.world_server.stub import CLOCK, StubEngine, served
from world_core.errors import IndexFailedError
from world_core.types import Outcome, SearchCall
from world_server.errors import ClientLeftError, DeadlineError, OverloadedError, UnknownWorldError
from world_server.exchange import Message, Request
from world_server.metrics import render


def request(world: str = "", *, leaves_after: float | None = None) -> Request:
    async def receive() -> Message:
        if leaves_after is None:
            await asyncio.Event().wait()
        await asyncio.sleep(leaves_after or 0.0)
        return {"type": "http.disconnect"}

    return Request({"method": "POST", "headers": [], "query_string": b""}, receive, world=world)


async def test_the_plan_is_made_for_the_world_that_answers(start: Starter) -> None:
    service = start().service
    clocks: list[int] = []

    def plan(manifest: object) -> list[SearchCall]:
        clocks.append(manifest.clock)  # type: ignore[attr-defined]
        return [SearchCall("x", count=2), SearchCall("y", count=1)]

    answers = await service.search(request(), plan)
    assert [len(answer.hits) for answer in answers] == [2, 1]
    assert clocks == [CLOCK]


async def test_a_waiting_call_meets_the_world_that_is_served_when_its_turn_comes(
    start: Starter,
) -> None:
    running = start(engine=StubEngine(0.05), max_running=1)
    newer = StubEngine(0.0)
    newer.label = "newer"
    calls = [
        asyncio.create_task(running.service.search(request(), lambda _: [SearchCall("x")]))
        for _ in range(2)
    ]
    await asyncio.sleep(0.01)
    running.service.worlds._slots["stub"].world = served(engine=newer)
    first, second = await asyncio.gather(*calls)
    assert first[0].hits[0].snippet != "newer"
    assert second[0].hits[0].snippet == "newer"


async def test_an_unknown_world_does_not_wait(start: Starter) -> None:
    running = start(max_running=1)
    with pytest.raises(UnknownWorldError):
        await running.service.fetch(request("other"), "https://a.example/")
    assert running.service.admission.running == 0


@pytest.mark.parametrize(
    ("delay", "leaves_after", "failure", "error"),
    [
        (5.0, 0.01, None, ClientLeftError),
        (5.0, None, None, DeadlineError),
        (0.0, None, IndexFailedError("x"), IndexFailedError),
    ],
)
async def test_however_a_call_ends_its_place_and_its_world_are_free_again(
    start: Starter, delay: float, leaves_after: float | None, failure: Exception | None,
    error: type[Exception],
) -> None:  # fmt: skip
    engine = StubEngine(delay)
    engine.failure = failure
    service = start(engine=engine, work_s=0.05).service
    with pytest.raises(error):
        await service.search(request(leaves_after=leaves_after), lambda _: [SearchCall("x")])
    assert (service.admission.running, service.admission.waiting) == (0, 0)
    await asyncio.wait_for(service.worlds.get().close(), 1.0)


async def test_a_client_that_leaves_the_queue_lets_the_next_one_in(start: Starter) -> None:
    service = start(engine=StubEngine(0.1), max_running=1).service
    plan = lambda _: [SearchCall("x")]  # noqa: E731 - three uses, one line
    first = asyncio.create_task(service.search(request(), plan))
    await asyncio.sleep(0.01)
    leaving = asyncio.create_task(service.search(request(leaves_after=0.02), plan))
    last = asyncio.create_task(service.search(request(), plan))
    with pytest.raises(ClientLeftError):
        await leaving
    assert (await first)[0].outcome is (await last)[0].outcome is Outcome.OK


async def test_waiting_too_long_is_overload_not_deadline(start: Starter) -> None:
    service = start(engine=StubEngine(0.2), max_running=1, wait_s=0.02).service
    first = asyncio.create_task(service.fetch(request(), "https://site1.example/page/1"))
    await asyncio.sleep(0.01)
    with pytest.raises(OverloadedError):
        await service.fetch(request(), "https://site1.example/page/1")
    assert (await first).outcome is Outcome.OK


async def test_steps_of_good_calls_are_counted(start: Starter) -> None:
    service = start().service
    await service.search(request(), lambda _: [SearchCall("x")])
    await service.fetch(request(), "https://site1.example/page/1")
    text = render(service.counts()).decode()
    assert 'world_step_calls_total{step="wait"} 2' in text
    assert 'world_step_calls_total{step="stub"} 1' in text
    assert 'world_step_calls_total{step="fetch"} 1' in text
