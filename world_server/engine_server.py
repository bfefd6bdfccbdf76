"""The engine's side of the local socket: connections, their calls, and the worlds they hold."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import weakref
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path

import msgspec

from world_core.errors import WorldError
from world_core.types import Timings
from world_server.counts import Counts
from world_server.engine_protocol import (
    PROTOCOL,
    CountsTold,
    EncoderAsked,
    EncoderTold,
    FetchAsked,
    FetchFound,
    Hello,
    Kind,
    RefreshAsked,
    RefreshDone,
    Released,
    SearchAsked,
    SearchFound,
    WorldsTold,
    WorldTold,
    decoded,
    encoded,
    told,
)
from world_server.errors import EngineLostError, FrameError
from world_server.frames import Frame, FrameProtocol
from world_server.worlds import ServedWorld, Worlds

FAREWELL_S = 5.0
"""Seconds that a connection has to take its last answers when the engine ends."""

_LOG = logging.getLogger(__name__)


class EngineServer:
    """Answers calls over the worlds of this process; belongs to one event loop."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.is_ending = False
        self._connections: set[_Connection] = set()
        self._openings: weakref.WeakKeyDictionary[ServedWorld, int] = weakref.WeakKeyDictionary()
        self._numbers = itertools.count(1)
        self._listening: asyncio.Server | None = None
        self._counts = Counts()

    async def listen(self, path: Path) -> None:
        """Let askers connect at a path of a folder that only this user may enter."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_unix_server(self._connect, str(path))

    async def refresh(self, name: str, *, again: bool = False) -> bool:
        """Switch a world as :meth:`Worlds.refresh` does, and tell every connection."""
        switched = await self.worlds.refresh(name, again=again)
        if switched:
            for connection in self._connections:
                connection.tell_worlds()
        return switched

    async def close(self) -> None:
        """Take no more calls, answer those that were taken, and end the connections."""
        self.is_ending = True
        if self._listening is not None:
            self._listening.close()
        while calls := [call for one in self._connections for call in one.calls.values()]:
            await asyncio.wait(calls)
        ends = [asyncio.create_task(one.end()) for one in self._connections]
        if ends:
            await asyncio.wait(ends, timeout=FAREWELL_S)

    def opened(self) -> dict[int, ServedWorld]:
        """Return the worlds that are open now by their openings."""
        return {self._opening(world): world for world in self.worlds.opened}

    def state(self) -> WorldsTold:
        """Return what connections are told of the worlds."""
        rows = []
        for name in self.worlds.names:
            try:
                world = self.worlds.get(name)
            except WorldError as error:
                rows.append(WorldTold(name, fault=told(self.worlds.fault(name) or error)))
                continue
            text = world.manifest.model_dump_json().encode()
            rows.append(WorldTold(name, self._opening(world), text))
        return WorldsTold(rows)

    def count_switch(self, result: str) -> None:
        """Count a switch that the pointer of a world asked for, ``done`` or ``refused``."""
        self._counts.add(Counts(switches={result: 1}))

    def totals(self) -> Counts:
        """Return what this process and all askers have counted, those that ended included."""
        sums = Counts()
        for counts in (self._counts, *(one.counts for one in self._connections)):
            sums.add(counts)
        return sums

    def forget(self, connection: _Connection) -> None:
        """Take a connection that has ended off the list; what it has counted stays."""
        self._connections.discard(connection)
        self._counts.add(connection.counts.settled())

    def _opening(self, world: ServedWorld) -> int:
        if world not in self._openings:
            self._openings[world] = next(self._numbers)
        return self._openings[world]

    def _connect(self) -> FrameProtocol:
        connection = _Connection(self)
        self._connections.add(connection)
        return connection.frames


class _Connection:
    """One asker: the openings it holds, and its calls at work."""

    def __init__(self, server: EngineServer) -> None:
        self.frames = FrameProtocol(self._take, self._lost)
        self.calls: dict[int, asyncio.Task[msgspec.Struct]] = {}
        self.counts = Counts()
        self._server = server
        self._greeted = False
        self._held: dict[int, tuple[ServedWorld, ExitStack]] = {}
        self._ended = asyncio.Event()

    def tell_worlds(self) -> None:
        """Send the worlds, and hold those that are open until they are released."""
        if not self._greeted:
            return
        for opening, world in self._server.opened().items():
            if opening not in self._held:
                lease = ExitStack()
                lease.enter_context(world.lease())
                self._held[opening] = (world, lease)
        self.frames.send(Frame(0, Kind.WORLDS, encoded(self._server.state())))

    async def end(self) -> None:
        """Close the connection and wait until what was sent has gone out."""
        self.frames.close()
        await self._ended.wait()

    def _take(self, frame: Frame) -> None:
        try:
            self._handle(frame)
        except WorldError as error:
            self._fail(frame.call, error)
            if isinstance(error, FrameError):
                _LOG.error("a connection is closed: %s", error)
                self.frames.close()

    def _handle(self, frame: Frame) -> None:
        """Do what a frame asks for.

        Raises:
            FrameError: the asker does not speak this protocol.
            EngineLostError: the engine is about to end.
        """
        kind, body = frame.kind, frame.body
        if kind == Kind.SEARCH:
            self._start(frame, self._search(decoded(SearchAsked, body)))
        elif kind == Kind.FETCH:
            self._start(frame, self._fetch(decoded(FetchAsked, body)))
        elif kind == Kind.ENCODER:
            self._start(frame, self._encoder(decoded(EncoderAsked, body)))
        elif kind == Kind.CANCEL:
            if (call := self.calls.get(frame.call)) is not None:
                call.cancel()
        elif kind == Kind.RELEASE:
            self._release(decoded(Released, body).opening)
        elif kind == Kind.REFRESH:
            self._start(frame, self._refresh(decoded(RefreshAsked, body)))
        elif kind == Kind.COUNTS:
            self._start(frame, self._counts(decoded(CountsTold, body)))
        elif kind == Kind.HELLO:
            self._greet(decoded(Hello, body))
        else:
            raise FrameError(f"No asker sends frames of kind {kind}.")

    def _greet(self, hello: Hello) -> None:
        if hello.protocol != PROTOCOL:
            raise FrameError(
                f"The asker speaks protocol {hello.protocol}, this engine {PROTOCOL}.",
                hint="Restart the server: its processes are of different releases.",
            )
        self._greeted = True
        self.tell_worlds()

    def _start(self, frame: Frame, work: Coroutine[None, None, msgspec.Struct]) -> None:
        if self._server.is_ending:
            work.close()
            raise EngineLostError("The engine process is about to end.", hint="Try again.")
        task = asyncio.get_running_loop().create_task(work)
        self.calls[frame.call] = task
        task.add_done_callback(functools.partial(self._done, frame.call))

    def _done(self, call: int, task: asyncio.Task[msgspec.Struct]) -> None:
        """Send what a call came to; nobody waits for a cancelled one."""
        self.calls.pop(call, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            try:
                self.frames.send(Frame(call, Kind.ANSWER, encoded(task.result())))
            except WorldError as refusal:
                self._fail(call, refusal)
        elif isinstance(error, WorldError):
            self._fail(call, error)
        else:
            _LOG.error("an error nobody foresaw", exc_info=error)
            self._fail(call, WorldError("The engine failed.", hint="Its log says why."))

    def _fail(self, call: int, error: WorldError) -> None:
        self.frames.send(Frame(call, Kind.ERROR, encoded(told(error))))

    async def _search(self, asked: SearchAsked) -> SearchFound:
        timings = Timings()
        answers = await self._world(asked.opening).engine.search(asked.calls, timings)
        return SearchFound(answers, timings.seconds)

    async def _fetch(self, asked: FetchAsked) -> FetchFound:
        return FetchFound(await self._world(asked.opening).engine.fetch(asked.call))

    async def _encoder(self, asked: EncoderAsked) -> EncoderTold:
        engine = self._world(asked.opening).engine
        return EncoderTold(await engine.encoder_report(probe=asked.probe))

    async def _refresh(self, asked: RefreshAsked) -> RefreshDone:
        return RefreshDone(await self._server.refresh(asked.name, again=True))

    async def _counts(self, told: CountsTold) -> CountsTold:
        self.counts = told.counts
        return CountsTold(self._server.totals())

    def _world(self, opening: int) -> ServedWorld:
        if opening not in self._held:
            raise FrameError(f"The connection does not hold opening {opening}.")
        return self._held[opening][0]

    def _release(self, opening: int) -> None:
        held = self._held.pop(opening, None)
        if held is not None:
            held[1].close()

    def _lost(self, reason: Exception | None) -> None:
        if reason is not None:
            _LOG.warning("a connection was lost: %s", reason)
        for call in self.calls.values():
            call.cancel()
        for opening in list(self._held):
            self._release(opening)
        self._server.forget(self)
        self._ended.set()
