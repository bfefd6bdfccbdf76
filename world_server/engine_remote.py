"""The engine process as a process that serves HTTP sees it: its worlds, over one connection."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from world_core.errors import WorldError
from world_core.types import FetchAnswer, FetchCall, SearchAnswer, SearchCall, Timings
from world_server.counts import Counts
from world_server.engine_protocol import (
    PROTOCOL,
    CountsTold,
    EncoderAsked,
    EncoderTold,
    ErrorTold,
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
    decoded,
    encoded,
    error_of,
)
from world_server.errors import EngineLostError
from world_server.frames import Frame, FrameProtocol
from world_server.query_encoder import EncoderReport
from world_server.worlds import ServedWorld, Slot, Worlds

RETRY_S = 0.1
"""Seconds between attempts to reach an engine process that is being started."""

_LOG = logging.getLogger(__name__)


class EngineLink:
    """One connection to the engine process; many calls may be under way on it.

    Args:
        on_worlds: called with the state of the worlds, first after the greeting and then whenever
            it changed.
        on_lost: called once when the connection has ended, after its calls have failed.
    """

    def __init__(
        self, on_worlds: Callable[[EngineLink, WorldsTold], None], on_lost: Callable[[], None]
    ) -> None:
        self._on_worlds = on_worlds
        self._on_lost = on_lost
        self._numbers = itertools.count(1)
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._frames = FrameProtocol(self._take, self._lost)
        self.ended = asyncio.Event()

    async def open(self, address: Path) -> bool:
        """Connect and greet; return whether anybody listens."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_unix_connection(lambda: self._frames, str(address))
        except (FileNotFoundError, ConnectionError):
            return False
        self._frames.send(Frame(0, Kind.HELLO, encoded(Hello(PROTOCOL))))
        return True

    async def ask(self, kind: Kind, body: msgspec.Struct) -> bytes:
        """Send a call and return the body of its answer; a cancelled await stops the work.

        Raises:
            EngineLostError: the engine process has ended.
            WorldError: what the engine raised.
        """
        data = encoded(body)
        if self.ended.is_set():
            raise _lost()
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._calls[number] = answer
        self._frames.send(Frame(number, kind, data))
        try:
            return await answer
        except asyncio.CancelledError:
            self._frames.send(Frame(number, Kind.CANCEL))
            raise
        finally:
            self._calls.pop(number, None)

    def release(self, opening: int) -> None:
        """Tell the engine that an opening is asked no more."""
        self._frames.send(Frame(0, Kind.RELEASE, encoded(Released(opening))))

    def close(self) -> None:
        """End the connection."""
        self._frames.close()

    def _take(self, frame: Frame) -> None:
        try:
            if frame.kind == Kind.WORLDS:
                self._on_worlds(self, decoded(WorldsTold, frame.body))
                return
            error = error_of(decoded(ErrorTold, frame.body)) if frame.kind == Kind.ERROR else None
        except WorldError as fault:
            error = fault
        answer = self._calls.get(frame.call)
        if answer is None:
            if error is not None and frame.call == 0:
                _LOG.critical("the engine process cannot be understood: %s", error)
                self.close()
        elif answer.done():
            pass  # cancelled in this turn of the loop
        elif error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(frame.body)

    def _lost(self, _reason: Exception | None) -> None:
        self.ended.set()
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(_lost())
        self._on_lost()


class RemoteEngine:
    """One opening of a world in the engine process; an ``EngineClient``."""

    def __init__(self, link: EngineLink, opening: int) -> None:
        self._link = link
        self._opening = opening

    def is_of(self, link: EngineLink, opening: int) -> bool:
        """Say whether this is that opening."""
        return self._link is link and self._opening == opening

    async def search(
        self, calls: Sequence[SearchCall], timings: Timings | None = None
    ) -> list[SearchAnswer]:
        """Answer several searches; a cancelled await stops the engine before its next step.

        Raises:
            EngineLostError: the engine process has ended; nothing is known of the answers.
            WorldError: see :meth:`world_core.engine.Engine.search_batch`.
        """
        data = await self._link.ask(Kind.SEARCH, SearchAsked(self._opening, list(calls)))
        found = decoded(SearchFound, data)
        if timings is not None:
            for step, seconds in found.seconds.items():
                timings.add(step, seconds)
        return found.answers

    async def fetch(self, call: FetchCall) -> FetchAnswer:
        """Return the addressed page, or why there is none; raises as :meth:`search` does."""
        data = await self._link.ask(Kind.FETCH, FetchAsked(self._opening, call))
        return decoded(FetchFound, data).answer

    async def encoder_report(self, *, probe: bool = False) -> EncoderReport | None:
        """Return how the encoder of the engine process is; raises as :meth:`search` does."""
        data = await self._link.ask(Kind.ENCODER, EncoderAsked(self._opening, probe))
        return decoded(EncoderTold, data).report

    async def close(self) -> None:
        """Let the engine close the world, if it was switched and nobody else asks it."""
        self._link.release(self._opening)


class RemoteWorlds(Worlds):
    """The worlds of the engine process, followed over a connection that is made again when lost.

    While there is no connection every call fails with EngineLostError. When the folder of the
    socket is gone no engine will ever come again, and ``abandoned`` is called.
    """

    def __init__(self, address: Path, *, abandoned: Callable[[], object]) -> None:
        super().__init__()
        self._address = address
        self._abandoned = abandoned
        self._link: EngineLink | None = None
        self._known = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and wait until the worlds are known or no engine will come."""
        self._keeping = asyncio.create_task(self._keep())
        await self._known.wait()

    def get(self, name: str = "") -> ServedWorld:
        """Return the world of a name, the first for ""; raises as :meth:`Worlds.get` does.

        Raises:
            EngineLostError: no engine process has been reached yet.
        """
        if not self.names:
            raise _lost()
        return super().get(name)

    async def totals(self, counts: Counts) -> Counts:
        """Tell the engine process what was counted here, and return the counts of all processes.

        Raises:
            EngineLostError: the engine process has ended.
        """
        if self._link is None:
            raise _lost()
        return decoded(CountsTold, await self._link.ask(Kind.COUNTS, CountsTold(counts))).counts

    async def refresh(self, name: str, *, again: bool = False) -> bool:
        """Switch a world when ``again`` is true, for all processes at once; say whether.

        Without ``again`` there is nothing to do: the engine process follows the pointers itself.

        Raises:
            EngineLostError: the engine process has ended.
            WorldError: see :meth:`Worlds.refresh`.
        """
        if not again:
            return False
        if self._link is None:
            raise _lost()
        return decoded(RefreshDone, await self._link.ask(Kind.REFRESH, RefreshAsked(name))).switched

    async def close(self) -> None:
        """Let go of the worlds, each after its last call, then of the engine process."""
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping
        await super().close()
        if self._link is not None:
            self._link.close()

    async def _keep(self) -> None:
        """Hold a connection as long as there may be an engine process."""
        while _is_there(self._address.parent):
            link = EngineLink(self._adopt, self._leave)
            if await link.open(self._address):
                await link.ended.wait()
            await asyncio.sleep(RETRY_S)
        self._known.set()
        self._abandoned()

    def _leave(self) -> None:
        self.changes += 1

    def _adopt(self, link: EngineLink, told: WorldsTold) -> None:
        """Serve the worlds that the engine has open now."""
        self._link = link
        before = self._slots
        self._slots = {}
        for row in told.worlds:
            slot = before.get(row.name)
            engine = slot.world.engine if slot is not None and slot.world is not None else None
            if row.fault is not None:
                self._slots[row.name] = Slot(None, fault=error_of(row.fault))
            elif (
                slot is not None
                and isinstance(engine, RemoteEngine)
                and engine.is_of(link, row.opening)
            ):
                self._slots[row.name] = before.pop(row.name)
            else:
                world = ServedWorld(row.read_manifest(), RemoteEngine(link, row.opening))
                self._slots[row.name] = Slot(world)
        for slot in before.values():
            if slot.world is not None:
                self._retire(slot.world)
        self.changes += 1
        self._known.set()


def _lost() -> EngineLostError:
    return EngineLostError(
        "The engine process has ended; another is being started.", hint="Try again in some seconds."
    )


def _is_there(folder: Path) -> bool:
    return folder.is_dir()
