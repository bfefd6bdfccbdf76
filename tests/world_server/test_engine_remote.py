"""The engine's side of the local socket and the other side, over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.world_server.stub import HITS, StubEngine, served
from tests.world_server.test_worlds import Shelf, pointed
from world_core.errors import (
    BadInputError,
    BadWorldError,
    DamagedFileError,
    EncoderError,
    PageStoreError,
    WorldError,
)
from world_core.types import FetchCall, Mode, Outcome, SearchCall, Timings
from world_server import engine_remote
from world_server.counts import Counts
from world_server.engine_protocol import Kind, SearchAsked, encoded
from world_server.engine_remote import EngineLink, RemoteWorlds
from world_server.engine_server import EngineServer
from world_server.errors import EngineLostError, FrameError, UnknownWorldError
from world_server.frames import Frame
from world_server.metrics import Metrics
from world_server.query_encoder import EncoderReport
from world_server.readiness import Readiness
from world_server.worlds import ServedWorld, Worlds, open_worlds

Connect = Callable[[], Awaitable[RemoteWorlds]]


@pytest.fixture
def address(tmp_path: Path) -> Path:
    """Return where an engine may listen."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "s"


@pytest.fixture
async def connect(address: Path) -> AsyncIterator[Connect]:
    """Return a function that connects to the engine that listens; all are closed in the end."""
    made: list[RemoteWorlds] = []

    async def connected() -> RemoteWorlds:
        worlds = RemoteWorlds(address, abandoned=lambda: None)
        made.append(worlds)
        async with asyncio.timeout(10):
            await worlds.start()
        return worlds

    yield connected
    for worlds in made:
        await worlds.close()


async def listening(address: Path, *worlds: ServedWorld) -> EngineServer:
    server = EngineServer(Worlds.of(*worlds))
    await server.listen(address)
    return server


def remove(address: Path) -> None:
    """Take a socket away as the parent does with that of an engine process that died."""
    address.unlink(missing_ok=True)


async def until(check: Callable[[], object]) -> None:
    """Wait for what another task does."""
    async with asyncio.timeout(10):
        while not check():  # noqa: ASYNC110 - another task's work
            await asyncio.sleep(0.005)


async def test_calls_are_answered_as_by_the_engine_itself(address: Path, connect: Connect) -> None:
    engine = StubEngine(0.0)
    server = await listening(address, served("a", engine=engine), served("b"))
    worlds = await connect()
    assert worlds.names == ["a", "b"]
    assert worlds.get().manifest == server.worlds.get("a").manifest
    calls = [SearchCall("x", count=3), SearchCall("y", count=2, offset=1)]
    timings = Timings()
    assert await worlds.get().engine.search(calls, timings) == await engine.search(calls)
    assert timings.seconds == {"stub": 0.0}
    page = FetchCall("https://site0.example/page/7")
    assert await worlds.get("b").engine.fetch(page) == await engine.fetch(page)
    await server.close()


async def test_the_encoder_is_asked_where_it_is(address: Path, connect: Connect) -> None:
    engine = StubEngine(0.0)
    server = await listening(address, served(engine=engine))
    remote = (await connect()).get().engine
    assert await remote.encoder_report() is None
    engine.encoder = EncoderReport(state="starting", batches=2, texts=5, hits=1, restarts=3)
    assert await remote.encoder_report(probe=True) == engine.encoder
    assert engine.probes == 1
    call = SearchCall("x", allow_lexical=True)
    engine.degraded = Mode.LEXICAL
    assert (await remote.search([call]))[0].degraded is Mode.LEXICAL
    assert engine.searches == [call]
    await server.close()


@pytest.mark.parametrize(
    "failure",
    [
        EncoderError("The model is gone.", hint="Run: x"),
        PageStoreError("The database is gone."),
        BadInputError("That is no query."),
    ],
)
async def test_errors_arrive_as_they_were_raised(
    address: Path, connect: Connect, failure: WorldError
) -> None:
    engine = StubEngine(0.0)
    engine.failure = failure
    server = await listening(address, served(engine=engine))
    with pytest.raises(type(failure)) as caught:
        await (await connect()).get().engine.search([SearchCall("x")])
    assert (caught.value.sentence, caught.value.hint) == (failure.sentence, failure.hint)
    await server.close()


async def test_an_error_nobody_foresaw_is_typed_and_logged(
    address: Path, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    engine = StubEngine(0.0)
    engine.failure = ZeroDivisionError("a bug")
    server = await listening(address, served(engine=engine))
    remote = (await connect()).get().engine
    with (
        caplog.at_level(logging.ERROR, logger="world_server"),
        pytest.raises(WorldError, match="The engine failed") as caught,
    ):
        await remote.fetch(FetchCall("https://a.example/"))
    assert (caught.value.code, caught.value.status) == ("internal", 503)
    assert "a bug" in caplog.text
    engine.failure = None
    assert (await remote.fetch(FetchCall("x.example"))).outcome is Outcome.NOT_IN_WORLD
    await server.close()


async def test_many_calls_share_a_connection_and_come_back_in_any_order(
    address: Path, connect: Connect
) -> None:
    slow, quick = StubEngine(0.2), StubEngine(0.0)
    server = await listening(address, served("slow", engine=slow), served("quick", engine=quick))
    worlds = await connect()
    late = [
        asyncio.create_task(worlds.get("slow").engine.search([SearchCall("x", count=number)]))
        for number in range(1, 31)
    ]
    early = await asyncio.gather(
        *(
            worlds.get("quick").engine.search([SearchCall("x", count=number)])
            for number in range(1, 31)
        )
    )
    assert not any(call.done() for call in late)
    assert [len(answers[0].hits) for answers in early] == list(range(1, 31))
    assert [len((await call)[0].hits) for call in late] == list(range(1, 31))
    assert len(server._connections) == 1
    await server.close()


async def test_a_cancelled_call_stops_in_the_engine(address: Path, connect: Connect) -> None:
    engine = StubEngine(30.0)
    server = await listening(address, served(engine=engine))
    remote = (await connect()).get().engine
    call = asyncio.create_task(remote.search([SearchCall("x")]))
    await until(lambda: engine.begun)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: engine.cancelled)
    engine.delay = 0.0
    assert (await remote.search([SearchCall("x", count=1)]))[0].hits
    await server.close()


async def test_the_calls_of_an_asker_that_ends_stop(address: Path, connect: Connect) -> None:
    engine = StubEngine(30.0)
    server = await listening(address, served(engine=engine))
    worlds = await connect()
    call = asyncio.create_task(worlds.get().engine.search([SearchCall("x")]))
    await until(lambda: engine.begun)
    assert worlds._link is not None
    worlds._link.close()
    with pytest.raises(EngineLostError):
        await call
    await until(lambda: engine.cancelled)
    await server.close()


async def test_an_engine_that_ends_answers_what_it_has_taken(
    address: Path, connect: Connect
) -> None:
    engine = StubEngine(0.2)
    server = await listening(address, served(engine=engine))
    worlds = await connect()
    remote = worlds.get().engine
    calls = [asyncio.create_task(remote.search([SearchCall("x", count=1)])) for _ in range(20)]
    await until(lambda: engine.begun == 20)
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0.01)
    with pytest.raises(EngineLostError, match="about to end"):
        await remote.search([SearchCall("late")])
    assert [len((await call)[0].hits) for call in calls] == [1] * 20
    await closing
    with pytest.raises(EngineLostError, match="another is being started"):
        await remote.search([SearchCall("later")])


async def test_a_lost_engine_is_no_empty_answer_and_the_next_one_is_found(
    address: Path, connect: Connect
) -> None:
    engine = StubEngine(0.0)
    server = await listening(address, served(engine=engine))
    worlds = await connect()
    readiness = Readiness(worlds, seconds=60.0, deadline=5.0)
    assert (await readiness.report()).is_ready
    engine.delay = 30.0
    call = asyncio.create_task(worlds.get().engine.search([SearchCall("x")]))
    await until(lambda: engine.begun > 1)
    for connection in list(server._connections):  # as when the process is killed
        assert connection.frames._transport is not None
        connection.frames._transport.abort()
    with pytest.raises(EngineLostError) as caught:
        await call
    assert (caught.value.code, caught.value.status) == ("engine_lost", 503)
    assert server._listening is not None
    server._listening.close()
    remove(address)
    with pytest.raises(EngineLostError):
        await worlds.get().engine.fetch(FetchCall("x.example"))
    report = await readiness.report()
    assert not report.is_ready, "though the last report is not old"
    assert report.worlds["stub"].startswith("engine_lost: The engine process has ended")

    newer = StubEngine(0.0)
    newer.label = "newer"
    another = await listening(address, served(engine=newer))
    await until(lambda: another._connections)

    async def label() -> str:
        with contextlib.suppress(EngineLostError):
            return (await worlds.get().engine.search([SearchCall("x", count=1)]))[0].hits[0].snippet
        return ""

    async with asyncio.timeout(10):
        while await label() != "newer":  # noqa: ASYNC110 - another task's work
            await asyncio.sleep(0.01)
    assert (await readiness.report()).is_ready
    await server.close()
    await another.close()


async def test_who_comes_before_the_engine_waits_for_it(
    address: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_remote, "RETRY_S", 0.01)
    worlds = RemoteWorlds(address, abandoned=lambda: None)
    starting = asyncio.create_task(worlds.start())
    await asyncio.sleep(0.03)
    assert not starting.done()
    with pytest.raises(EngineLostError):
        worlds.get()
    server = await listening(address, served("late"))
    async with asyncio.timeout(10):
        await starting
    assert worlds.names == ["late"]
    await worlds.close()
    await server.close()


async def test_without_the_folder_no_engine_will_come(address: Path) -> None:
    told: list[bool] = []
    worlds = RemoteWorlds(address, abandoned=lambda: told.append(True))
    server = await listening(address, served())
    await worlds.start()
    assert told == []
    remove(address)
    address.parent.rmdir()
    await server.close()
    await until(lambda: told)
    await worlds.close()
    late = RemoteWorlds(address, abandoned=lambda: told.append(False))
    async with asyncio.timeout(10):
        await late.start()
    assert late.names == []
    with pytest.raises(EngineLostError):
        late.get("stub")
    await late.close()


async def test_a_switch_reaches_every_asker_and_the_old_world_closes_after_the_last(
    tmp_path: Path, address: Path, connect: Connect
) -> None:
    shelf = Shelf()
    server = EngineServer(open_worlds([str(pointed(tmp_path, "v1"))], shelf))
    await server.listen(address)
    one, other = await connect(), await connect()
    pointed(tmp_path, "v2")
    with one.get().lease() as held:
        assert await other.refresh("atlas", again=True)
        assert other.get().manifest.version == "v2"
        await until(lambda: one.get().manifest.version == "v2")
        assert held.manifest.version == "v1"
        (answer,) = await held.engine.search([SearchCall("x", count=1)])
        assert answer.hits[0].snippet == "v1", "the plan and the answer are of one world"
        assert shelf.closed == []
    await until(lambda: shelf.closed == ["v1"])
    assert not await one.refresh("atlas", again=True)
    assert not await one.refresh("atlas")
    await server.close()
    await server.worlds.close()


async def test_refused_versions_and_unknown_names_are_told(
    tmp_path: Path, address: Path, connect: Connect
) -> None:
    server = EngineServer(open_worlds([str(pointed(tmp_path, "v1"))], Shelf()))
    await server.listen(address)
    worlds = await connect()
    pointed(tmp_path, "bad")
    with pytest.raises(DamagedFileError, match=r"passages\.bin"):
        await worlds.refresh("atlas", again=True)
    assert worlds.get().manifest.version == "v1"
    with pytest.raises(UnknownWorldError):
        await worlds.refresh("nowhere", again=True)
    await server.close()


async def test_a_refused_world_keeps_its_place_until_it_can_be_served(
    tmp_path: Path, address: Path, connect: Connect
) -> None:
    good, bad = pointed(tmp_path, "v1", "good"), pointed(tmp_path, "bad", "first")
    server = EngineServer(open_worlds([str(bad), str(good)], Shelf()))
    await server.listen(address)
    worlds = await connect()
    assert worlds.names == ["first", "good"]
    assert [world.manifest.name for world in worlds.opened] == ["good"]
    with pytest.raises(BadWorldError) as here:
        worlds.get()
    with pytest.raises(BadWorldError) as there:
        server.worlds.get()
    assert here.value.sentence == there.value.sentence
    assert "damaged_file" in here.value.sentence
    pointed(tmp_path, "v2", "first")
    assert await worlds.refresh("first", again=True)
    assert worlds.get().manifest.version == "v2"
    await server.close()
    await server.worlds.close()


async def test_fifty_switches_under_load_mix_no_worlds(
    tmp_path: Path, address: Path, connect: Connect
) -> None:
    shelf = Shelf()
    server = EngineServer(open_worlds([str(pointed(tmp_path, "v0"))], shelf))
    await server.listen(address)
    askers = [await connect() for _ in range(2)]
    seen: list[tuple[str, set[str]]] = []
    stop = asyncio.Event()

    async def ask(worlds: RemoteWorlds) -> None:
        while not stop.is_set():
            with worlds.get().lease() as world:
                answers = await world.engine.search([SearchCall("x", count=2)] * 2)
                labels = {hit.snippet for answer in answers for hit in answer.hits}
                seen.append((world.manifest.version, labels))

    asking = [asyncio.create_task(ask(worlds)) for worlds in askers for _ in range(2)]
    for number in range(1, 51):
        pointed(tmp_path, f"v{number}")
        assert await server.refresh("atlas")
        await asyncio.sleep(0.002)
    stop.set()
    await asyncio.gather(*asking)
    assert all(labels == {version} for version, labels in seen)
    assert len({version for version, _ in seen}) > 10
    await until(lambda: len(shelf.closed) == 50)
    await server.close()
    await server.worlds.close()


class Raw:
    """An asker that sends whatever it likes."""

    def __init__(self) -> None:
        self.link = EngineLink(lambda *_: None, lambda: None)

    async def send(self, address: Path, frame: Frame) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self.link._frames, str(address))
        self.link._frames.send(frame)
        async with asyncio.timeout(10):
            await self.link.ended.wait()


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (Frame(0, Kind.HELLO, b"\x91\x63"), "protocol 99"),
        (Frame(1, 200, b""), "kind 200"),
        (Frame(1, Kind.SEARCH, b"\x00"), "are no SearchAsked"),
    ],
)
async def test_who_does_not_speak_the_protocol_is_let_go(
    address: Path, caplog: pytest.LogCaptureFixture, frame: Frame, said: str
) -> None:
    server = await listening(address, served())
    with caplog.at_level(logging.ERROR, logger="world_server"):
        await Raw().send(address, frame)
    assert said in caplog.text
    await server.close()


async def test_an_opening_that_is_not_held_is_not_asked(address: Path, connect: Connect) -> None:
    server = await listening(address, served())
    worlds = await connect()
    assert worlds._link is not None
    with pytest.raises(FrameError, match="does not hold opening 77"):
        await worlds._link.ask(Kind.SEARCH, SearchAsked(77, [SearchCall("x")]))
    await server.close()


async def test_what_cannot_be_written_fails_alone(address: Path, connect: Connect) -> None:
    server = await listening(address, served())
    remote = (await connect()).get().engine
    with pytest.raises(BadInputError, match="cannot be passed on"):
        await remote.search([SearchCall("\ud800")])
    assert (await remote.search([SearchCall("x", count=HITS)]))[0].hits
    await server.close()


async def test_frames_of_calls_nobody_waits_for_are_dropped() -> None:
    link = EngineLink(lambda *_: None, lambda: None)
    link._take(Frame(5, Kind.ANSWER, b"late"))
    link._take(Frame(5, Kind.ERROR, encoded(SearchAsked(1, []))))
    assert not link.ended.is_set()


def counted(requests: int, running: int = 0) -> Counts:
    """Return the counts of a process that answered so many requests."""
    metrics = Metrics()
    for _ in range(requests):
        metrics.count_request("search", "ok", 0.1)
    return metrics.counts(running=running, waiting=0, refused=0, expired=0)


async def test_counts_of_all_askers_are_added_up_and_outlive_them(
    address: Path, connect: Connect
) -> None:
    server = await listening(address, served())
    one, other = await connect(), await connect()
    assert (await one.totals(counted(3, running=2))).requests == {("search", "ok"): 3}
    assert (await other.totals(counted(4, running=1))).requests == {("search", "ok"): 7}
    total = await one.totals(counted(5, running=2))  # told anew, not once more
    assert total.requests == {("search", "ok"): 9}
    assert total.plain["world_running_calls"] == 3
    assert total.plain["world_counted_processes"] == 2
    await other.close()
    await until(lambda: len(server._connections) == 1)
    server.count_switch("done")
    total = await one.totals(counted(5, running=2))
    assert total.requests == {("search", "ok"): 9}
    assert total.switches == {"done": 1}
    assert total.plain["world_running_calls"] == 2
    assert total.plain["world_counted_processes"] == 1
    await server.close()
    with pytest.raises(EngineLostError):
        await one.totals(counted(1))
