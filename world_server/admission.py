"""How many calls run at once, who waits, and who is told to come back later."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from world_server.errors import OverloadedError

LONGEST_RETRY = 5
_STRIDE = 3  # coprime to LONGEST_RETRY, so that refused callers spread evenly over 1..5 s


class Admission:
    """A limit on running calls with a first-in-first-out queue in front.

    A call waits up to ``wait_s`` for its turn. It is refused at once only when the queue is full.
    Belongs to one event loop.

    Attributes:
        running: calls let in and not yet done.
        refused: calls refused because the queue was full.
        expired: calls that waited to the deadline.
    """

    def __init__(self, *, running_limit: int, queue_limit: int, wait_s: float) -> None:
        self._running_limit = running_limit
        self._queue_limit = queue_limit
        self._wait_s = wait_s
        self._waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self.running = 0
        self.refused = 0
        self.expired = 0

    @property
    def waiting(self) -> int:
        """Calls in the queue."""
        return len(self._waiting)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the running places; wait for it first.

        A waiting call that is cancelled leaves the queue at once.

        Raises:
            OverloadedError: the queue is full, or the wait reached its deadline.
        """
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self.running < self._running_limit:
            self.running += 1
            return
        if len(self._waiting) >= self._queue_limit:
            self.refused += 1
            raise self._overloaded(f"{len(self._waiting)} calls are waiting already.")
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting[turn] = None
        timer = loop.call_later(self._wait_s, self._expire, turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.pop(turn, None)
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()  # the place was handed over just before the cancellation
            raise
        finally:
            timer.cancel()

    def _leave(self) -> None:
        """Hand the place to the call that waits longest, or give it back."""
        while self._waiting:
            turn, _ = self._waiting.popitem(last=False)
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1

    def _expire(self, turn: asyncio.Future[None]) -> None:
        if turn in self._waiting:
            del self._waiting[turn]
            self.expired += 1
            turn.set_exception(self._overloaded(f"No turn within {self._wait_s:g} s."))

    def _overloaded(self, sentence: str) -> OverloadedError:
        seconds = 1 + (self.refused + self.expired) * _STRIDE % LONGEST_RETRY
        return OverloadedError(f"The server is at its limit. {sentence}", retry_after=seconds)
