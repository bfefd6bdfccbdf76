from __future__ import annotations

import asyncio

import pytest

from tests.world_server.conftest import Running, Starter
from tests.world_server.stub import StubEngine, manifest, meta, served
from world_core.errors import EncoderError, IndexFailedError, PageStoreError, WorldError
from world_core.manifest import Canary
from world_server.readiness import Readiness, Report
from world_server.worlds import ServedWorld, Worlds


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make(engine: StubEngine, clock: Clock, deadline: float = 1.0) -> Readiness:
    worlds = Worlds.of(served("a", engine=engine))
    return Readiness(worlds, seconds=10.0, deadline=deadline, clock=clock)


async def test_a_report_holds_for_its_time_whoever_asks() -> None:
    engine, clock = StubEngine(0.001), Clock()
    readiness = make(engine, clock)
    reports = await asyncio.gather(*(readiness.report() for _ in range(20)))
    assert all(report.is_ready for report in reports)
    assert [call.rerank for call in engine.searches] == [False, True]
    clock.now += 5.0
    await readiness.report()
    assert len(engine.searches) == 2


async def test_past_half_its_time_the_next_is_made_while_the_old_one_answers() -> None:
    engine, clock = StubEngine(0.001), Clock()
    readiness = make(engine, clock)
    first = await readiness.report()
    clock.now += 6.0
    engine.failure = EncoderError("The encoder failed.")
    assert await readiness.report() is first
    second = first
    for _ in range(1000):
        await asyncio.sleep(0.002)
        second = await readiness.report()
        if second is not first:
            break
    assert second.worlds == {"a": "encoder: The encoder failed."}
    assert not second.is_ready


async def test_an_old_report_is_never_given() -> None:
    engine, clock = StubEngine(0.001), Clock()
    readiness = make(engine, clock)
    assert (await readiness.report()).is_ready
    engine.failure = IndexFailedError("gone")
    clock.now += 10.1
    assert not (await readiness.report()).is_ready


@pytest.mark.parametrize(
    ("failure", "part"),
    [
        (EncoderError("x"), "encoder"),
        (IndexFailedError("x"), "index"),
        (PageStoreError("x"), "page_store"),
    ],
)
async def test_the_failing_part_is_named(failure: WorldError, part: str) -> None:
    engine = StubEngine(0.0)
    engine.failure = failure
    assert (await make(engine, Clock()).report()).worlds == {"a": f"{part}: x"}


async def test_the_page_store_is_asked_too() -> None:
    engine = StubEngine(0.0)
    engine.page_failure = PageStoreError("The database is gone.")
    report = await make(engine, Clock()).report()
    assert report.worlds == {"a": "page_store: The database is gone."}


async def test_a_canary_that_takes_too_long_is_a_fault() -> None:
    report = await make(StubEngine(5.0), Clock(), deadline=0.01).report()
    assert report.worlds == {"a": "deadline: no answer within 0.01 s"}


async def test_the_encoder_is_asked_for_something_new() -> None:
    engine = StubEngine(0.0)
    assert (await make(engine, Clock()).report()).is_ready
    assert engine.probes == 1


async def test_wrong_pages_are_a_fault() -> None:
    wrong = manifest("a").model_copy(
        update={"canaries": (Canary(query="q", page_ids=(meta(7).page_id,)),)}
    )
    worlds = Worlds.of(ServedWorld(wrong, StubEngine(0.0)))
    report = await Readiness(worlds, seconds=10.0, deadline=1.0).report()
    assert report.worlds["a"].startswith("answers: The canary query 'q' brought up")


async def test_one_bad_world_makes_the_server_not_ready_and_is_told_apart() -> None:
    bad = StubEngine(0.0)
    bad.failure = EncoderError("x")
    worlds = Worlds.of(served("a"), served("b", engine=bad))
    report = await Readiness(worlds, seconds=10.0, deadline=1.0).report()
    assert report.worlds == {"a": "ok", "b": "encoder: x"}
    assert not report.is_ready


@pytest.mark.parametrize(
    ("states", "refused", "ready"),
    [
        ({"a": "ok", "b": "bad_world: x"}, {"b"}, True),
        ({"a": "ok", "b": "encoder: x"}, set(), False),
        ({"a": "bad_world: x", "b": "ok"}, {"a"}, False),
        ({"a": "ok", "b": "ok"}, set(), True),
    ],
)
def test_a_refused_world_takes_only_its_own_requests_out_of_service(
    states: dict[str, str], refused: set[str], ready: bool
) -> None:
    assert Report(states, frozenset(refused)).is_ready is ready


async def test_the_route_tells_the_truth(start: Starter) -> None:
    engine = StubEngine(0.0)
    running = start(engine=engine, ready_s=0.01)
    good = await running.client.get("/ready")
    assert (good.status_code, good.json()) == (200, {"ready": True, "worlds": {"stub": "ok"}})
    engine.failure = EncoderError("The model is gone.")
    await asyncio.sleep(0.02)
    bad = await running.client.get("/ready")
    assert bad.status_code == 503
    assert bad.json() == {"ready": False, "worlds": {"stub": "encoder: The model is gone."}}


async def test_a_server_that_ends_is_alive_but_not_ready(running: Running) -> None:
    running.service.stopping = True
    assert (await running.client.get("/ready")).json() == {"ready": False, "reason": "stopping"}
    assert (await running.client.get("/health")).json() == {"status": "ok"}
    assert (await running.client.get("/search?q=x")).status_code == 200


async def test_readiness_needs_no_place_in_the_queue(start: Starter) -> None:
    running = start(engine=StubEngine(0.2), max_running=1, queue_limit=0)
    call = asyncio.create_task(running.client.get("/search?q=x"))
    await asyncio.sleep(0.02)
    assert (await running.client.get("/search?q=x")).status_code == 503
    assert (await running.client.get("/ready")).status_code == 200
    assert (await call).status_code == 200
