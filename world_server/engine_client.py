"""The engine as the server sees it: asynchronous, wherever the engine lives."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from world_core.types import FetchAnswer, FetchCall, SearchAnswer, SearchCall, Timings, Vector
from world_server.query_encoder import EncoderReport, QueryEncoder
from world_server.query_vectors import query_vectors


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

    async def encoder_report(self, *, probe: bool = False) -> EncoderReport | None:
        """Return how the encoder of queries is, ``None`` for a world without one.

        Args:
            probe: let it encode something first.

        Raises:
            EncoderError: the probe failed.
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
        vectors: Sequence[Vector | None] | None = None,
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
    """Runs an engine of this process on a fixed pool of threads, never on the event loop.

    Args:
        engine: what answers.
        threads: calls at work at once.
        encoder: gives the vectors of queries before a thread is taken; without it the engine does.
        on_close: called when the engine has been closed.
    """

    def __init__(
        self,
        engine: BlockingEngine,
        *,
        threads: int,
        encoder: QueryEncoder | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine
        self._encoder = encoder
        self._on_close = on_close
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="engine")

    async def search(
        self, calls: Sequence[SearchCall], timings: Timings | None = None
    ) -> list[SearchAnswer]:
        """Answer several searches; a cancelled await stops the engine before its next step."""
        vectors = await self._vectors(calls, timings)
        gone = threading.Event()
        work = self._pool.submit(
            self._engine.search_batch,
            calls,
            vectors=vectors,
            cancelled=gone.is_set,
            timings=timings,
        )
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            gone.set()
            raise

    async def fetch(self, call: FetchCall) -> FetchAnswer:
        """Return the addressed page; a cancelled await drops the fetch if it has not begun."""
        return await asyncio.wrap_future(self._pool.submit(self._engine.fetch, call))

    async def encoder_report(self, *, probe: bool = False) -> EncoderReport | None:
        """Return how the encoder is; see :class:`EngineClient`."""
        if self._encoder is None:
            return None
        if probe:
            await asyncio.wrap_future(self._encoder.probe())
        return self._encoder.report()

    async def close(self) -> None:
        """Wait for the threads to end their calls, then close the engine."""
        await asyncio.to_thread(self._close)

    async def _vectors(
        self, calls: Sequence[SearchCall], timings: Timings | None
    ) -> list[Vector | None] | None:
        if self._encoder is None or not any(call.needs_vector for call in calls):
            return None
        started = time.perf_counter()
        vectors = await query_vectors(self._encoder, calls)
        if timings is not None:
            timings.add("encode", time.perf_counter() - started)
        return vectors

    def _close(self) -> None:
        self._pool.shutdown(wait=True)
        self._engine.close()
        if self._on_close is not None:
            self._on_close()
