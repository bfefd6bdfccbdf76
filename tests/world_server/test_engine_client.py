from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from tests.world_server.stub import hit
from world_core.errors import CancelledCallError, PageStoreError
from world_core.types import (
    FetchAnswer,
    FetchCall,
    Outcome,
    SearchAnswer,
    SearchCall,
    Timings,
    Vector,
)
from world_server.engine_client import LocalEngine


class SlowEngine:
    """A blocking engine in steps: each waits for the gate, then looks whether anybody waits."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.broken_off = threading.Event()
        self.fetched: list[str] = []
        self.threads: set[str] = set()
        self.closed = False

    def search_batch(
        self,
        calls: Sequence[SearchCall],
        *,
        vectors: Sequence[Vector | None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        timings: Timings | None = None,
    ) -> list[SearchAnswer]:
        self.threads.add(threading.current_thread().name)
        self.begun.release()
        self.gate.wait(10)
        if cancelled is not None and cancelled():
            self.broken_off.set()
            raise CancelledCallError("Nobody waits.")
        if timings is not None:
            timings.add("step", 1.0)
        return [SearchAnswer(Outcome.OK, (hit(call.count),)) for call in calls]

    def fetch(self, call: FetchCall) -> FetchAnswer:
        self.fetched.append(call.url)
        if call.url == "broken":
            raise PageStoreError("The page store is gone.")
        return FetchAnswer(Outcome.NOT_IN_WORLD, call.url)

    def close(self) -> None:
        self.closed = True


async def test_answers_come_back_in_order_with_their_timings() -> None:
    engine = SlowEngine()
    engine.gate.set()
    local = LocalEngine(engine, threads=1)
    timings = Timings()
    answers = await local.search([SearchCall("a", count=1), SearchCall("b", count=2)], timings)
    assert [answer.hits[0] for answer in answers] == [hit(1), hit(2)]
    assert timings.seconds == {"step": 1.0}
    await local.close()
    assert engine.closed


async def test_the_event_loop_turns_while_the_engine_works() -> None:
    engine = SlowEngine()
    local = LocalEngine(engine, threads=2)
    calls = [asyncio.create_task(local.search([SearchCall("a")])) for _ in range(8)]
    turns = 0
    while not engine.begun.acquire(blocking=False):
        turns += 1
        await asyncio.sleep(0)
    assert not any(call.done() for call in calls)
    engine.gate.set()
    await asyncio.gather(*calls)
    assert 1 <= len(engine.threads) <= 2
    assert all(name.startswith("engine") for name in engine.threads)
    await local.close()


async def test_cancelling_stops_the_engine_before_its_next_step() -> None:
    engine = SlowEngine()
    local = LocalEngine(engine, threads=1)
    call = asyncio.create_task(local.search([SearchCall("a")]))
    await asyncio.to_thread(engine.begun.acquire)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not engine.broken_off.is_set()
    engine.gate.set()
    await local.close()
    assert engine.broken_off.is_set()


async def test_a_cancelled_call_that_has_not_begun_never_does() -> None:
    engine = SlowEngine()
    local = LocalEngine(engine, threads=1)
    first = asyncio.create_task(local.search([SearchCall("a")]))
    second = asyncio.create_task(local.fetch(FetchCall("never")))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)  # only now the pool hears of it
    engine.gate.set()
    await first
    await local.close()
    assert engine.fetched == []


async def test_errors_of_the_engine_pass() -> None:
    local = LocalEngine(SlowEngine(), threads=1)
    with pytest.raises(PageStoreError):
        await local.fetch(FetchCall("broken"))
    assert (await local.fetch(FetchCall("x"))).outcome is Outcome.NOT_IN_WORLD
    await local.close()


async def test_closing_waits_for_the_calls_inside() -> None:
    engine = SlowEngine()
    local = LocalEngine(engine, threads=1)
    call = asyncio.create_task(local.search([SearchCall("a")]))
    await asyncio.to_thread(engine.begun.acquire)
    closing = asyncio.create_task(local.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    assert not engine.closed
    engine.gate.set()
    await closing
    assert (await call)[0].hits
    assert engine.closed
