"""The engine as the server sees it: asynchronous, wherever the engine lives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from world_core.types import FetchAnswer, FetchCall, SearchAnswer, SearchCall, Timings


class EngineClient(Protocol):
    """Answers calls over one world; cancelling an await stops the work behind it."""

    async def search(
        self, calls: Sequence[SearchCall], timings: Timings | None = None
    ) -> list[SearchAnswer]:
        """Answer several searches, each as if it had been asked alone.

        Raises:
            WorldError: see :meth:`world_core.engine.Engine.search_batch`.
        """
        ...

    async def fetch(self, call: FetchCall) -> FetchAnswer:
        """Return the addressed page, or why there is none.

        Raises:
            WorldError: see :meth:`world_core.engine.Engine.fetch`.
        """
        ...

    async def close(self) -> None:
        """Wait for the calls at work, then release the engine."""
        ...


class BlockingEngine(Protocol):
    """What :class:`LocalEngine` needs of :class:`world_core.engine.Engine`."""

    def search_batch(
        self,
        calls: Sequence[SearchCall],
        *,
        cancelled: Callable[[], bool] | None = None,
        timings: Timings | None = None,
    ) -> list[SearchAnswer]:
        """Answer several searches."""
        ...

    def fetch(self, call: FetchCall) -> FetchAnswer:
        """Return the addressed page."""
        ...

    def close(self) -> None:
        """Release files and memory."""
        ...


class LocalEngine:
    """Runs an engine of this process on a fixed pool of threads, never on the event loop."""

    def __init__(self, engine: BlockingEngine, *, threads: int) -> None:
        self._engine = engine
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="engine")

    async def search(
        self, calls: Sequence[SearchCall], timings: Timings | None = None
    ) -> list[SearchAnswer]:
        """Answer several searches; a cancelled await stops the engine before its next step."""
        gone = threading.Event()
        work = self._pool.submit(
            self._engine.search_batch, calls, cancelled=gone.is_set, timings=timings
        )
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            gone.set()
            raise

    async def fetch(self, call: FetchCall) -> FetchAnswer:
        """Return the addressed page; a cancelled await drops the fetch if it has not begun."""
        return await asyncio.wrap_future(self._pool.submit(self._engine.fetch, call))

    async def close(self) -> None:
        """Wait for the threads to end their calls, then close the engine."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._pool.shutdown(wait=True)
        self._engine.close()
