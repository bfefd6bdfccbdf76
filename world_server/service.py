"""What every handler works with, and the one path a call takes to the engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from world_core.manifest import Manifest
from world_core.types import FetchAnswer, FetchCall, SearchAnswer, SearchCall, Timings
from world_server.admission import Admission
from world_server.counts import Counts
from world_server.departure import while_connected
from world_server.errors import DeadlineError
from world_server.exchange import Request
from world_server.keys import KeyRing
from world_server.metrics import Metrics
from world_server.readiness import Readiness
from world_server.settings import Settings
from world_server.worlds import ServedWorld, Worlds

Result = TypeVar("Result")


@dataclass(slots=True)
class Service:
    """The parts of one server process; belongs to one event loop.

    ``stopping`` is set when the process was told to end: it is not ready any more, but what was
    accepted is answered.
    """

    settings: Settings
    worlds: Worlds
    keys: KeyRing
    admission: Admission
    metrics: Metrics
    readiness: Readiness
    assets: Mapping[str, bytes]
    stopping: bool = False

    async def search(
        self, request: Request, plan: Callable[[Manifest], Sequence[SearchCall]]
    ) -> list[SearchAnswer]:
        """Answer the searches that ``plan`` makes for the world that is served when they run.

        Raises:
            UnknownWorldError: no world of the request's name is served.
            OverloadedError: no turn in time, or the queue is full.
            DeadlineError: the work did not end in time.
            ClientLeftError: the client left.
            WorldError: what the engine raises.
        """
        timings = Timings()

        async def work(world: ServedWorld) -> list[SearchAnswer]:
            return await world.engine.search(plan(world.manifest), timings)

        answers = await self._run(request, work, timings)
        self.metrics.degraded += sum(answer.degraded is not None for answer in answers)
        return answers

    async def fetch(self, request: Request, url: str) -> FetchAnswer:
        """Return the addressed page, or why there is none; raises as :meth:`search` does."""
        timings = Timings()

        async def work(world: ServedWorld) -> FetchAnswer:
            started = time.perf_counter()
            answer = await world.engine.fetch(FetchCall(url))
            timings.add("fetch", time.perf_counter() - started)
            return answer

        return await self._run(request, work, timings)

    def counts(self) -> Counts:
        """Return what this process has counted."""
        admission = self.admission
        return self.metrics.counts(
            running=admission.running,
            waiting=admission.waiting,
            refused=admission.refused,
            expired=admission.expired,
        )

    async def _run(
        self,
        request: Request,
        work: Callable[[ServedWorld], Awaitable[Result]],
        timings: Timings,
    ) -> Result:
        self.worlds.get(request.world)
        admitted = self._admitted(request.world, work, timings)
        result = await while_connected(request.receive, admitted)
        self.metrics.count_steps(timings)
        return result

    async def _admitted(
        self,
        name: str,
        work: Callable[[ServedWorld], Awaitable[Result]],
        timings: Timings,
    ) -> Result:
        started = time.perf_counter()
        async with self.admission.slot():
            timings.add("wait", time.perf_counter() - started)
            limit = asyncio.timeout(self.settings.work_s)
            try:
                async with limit:
                    # The world is looked up here, so that a waiting call meets the newest one.
                    with self.worlds.get(name).lease() as world:
                        return await work(world)
            except TimeoutError as error:
                if not limit.expired():
                    raise
                raise DeadlineError(
                    f"The work did not end within {self.settings.work_s:g} s."
                ) from error
