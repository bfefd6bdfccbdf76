"""Whether the server can answer truly: the canary queries, asked again when their answer is old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from world_core.errors import WorldError
from world_server import canary
from world_server.worlds import Worlds


@dataclass(frozen=True, slots=True)
class Report:
    """The state of each world by name, the first one first: "ok", or the failing part and why.

    ``refused`` names those that were never opened.
    """

    worlds: dict[str, str]
    refused: frozenset[str] = frozenset()

    @property
    def is_ready(self) -> bool:
        """True when the world that plain requests meet and every open one is well.

        A later world that was refused is named, but takes the others out of no service.
        """
        first = next(iter(self.worlds), "")
        return bool(self.worlds) and all(
            state == "ok" or (name in self.refused and name != first)
            for name, state in self.worlds.items()
        )


class Readiness:
    """Asks the canary queries of every world at most once in a while, whoever asks.

    A report is good for ``seconds``. Past half of that the next one is made in the background, so
    that regular probes never wait; a probe that finds none waits for it, up to ``deadline``. What
    happens to the worlds (a switch, a lost engine process) ends a report's time.
    """

    def __init__(
        self,
        worlds: Worlds,
        *,
        seconds: float,
        deadline: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worlds = worlds
        self._seconds = seconds
        self._deadline = deadline
        self._clock = clock
        self._report: Report | None = None
        self._made = 0.0
        self._changes = 0
        self._task: asyncio.Task[Report] | None = None

    async def report(self) -> Report:
        """Return a report that is not older than ``seconds``."""
        age = self._clock() - self._made
        if self._report is None or age > self._seconds or self._changes != self._worlds.changes:
            return await asyncio.shield(self._refresh())
        if age > self._seconds / 2:
            self._refresh()
        return self._report

    def _refresh(self) -> asyncio.Task[Report]:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._make())
        return self._task

    async def _make(self) -> Report:
        # Noted before the worlds are asked, so that what changes meanwhile makes it old at once.
        changes = self._worlds.changes
        names = self._worlds.names
        states = await asyncio.gather(*(self._state(name) for name in names))
        opened = {world.manifest.name for world in self._worlds.opened}
        refused = frozenset(name for name in names if name not in opened)
        self._report = Report(dict(zip(names, states, strict=True)), refused)
        self._made = self._clock()
        self._changes = changes
        return self._report

    async def _state(self, name: str) -> str:
        try:
            world = self._worlds.get(name)
        except WorldError as error:
            return f"{error.code}: {error.sentence}"
        manifest = world.manifest
        with world.lease():
            try:
                async with asyncio.timeout(self._deadline):
                    # The canary queries alone would not do: their vectors may be remembered.
                    await world.engine.encoder_report(probe=True)
                    answers = await world.engine.search(canary.calls(manifest))
                    call = canary.page_call(answers)
                    page = await world.engine.fetch(call) if call is not None else None
            except TimeoutError:
                return f"deadline: no answer within {self._deadline:g} s"
            except WorldError as error:
                return f"{error.code}: {error.sentence}"
        wrong = canary.fault(manifest, answers, page)
        return f"answers: {wrong}" if wrong else "ok"
