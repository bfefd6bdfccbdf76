"""The steps of a call: measured, and stopped between them when nobody waits any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from world_core.errors import CancelledCallError
from world_core.types import Timings

Cancelled = Callable[[], bool]


class Steps:
    """Measures the steps of a call and stops between them when nobody waits any more."""

    def __init__(self, cancelled: Cancelled | None, timings: Timings | None) -> None:
        self._cancelled = cancelled
        self._timings = timings

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        """Add the seconds of the block to the step; raises CancelledCallError before it."""
        if self._cancelled is not None and self._cancelled():
            raise CancelledCallError(f"Nobody waits for this call; stopped before {step}.")
        started = time.perf_counter()
        yield
        if self._timings is not None:
            self._timings.add(step, time.perf_counter() - started)
