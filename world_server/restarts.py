"""When a process that keeps ending may be started again."""

from __future__ import annotations

from collections import deque

LIMIT = 5
WINDOW_S = 60.0
FIRST_DELAY_S = 0.5


class Restarts:
    """Counts the starts of one process: the first two at once, then with growing pauses.

    Times are seconds of a clock that never goes back. Never more than ``limit`` starts lie within
    ``window_s``; when that many do, the next one waits until the oldest has left the window.
    """

    def __init__(self, *, limit: int = LIMIT, window_s: float = WINDOW_S) -> None:
        self._limit = limit
        self._window_s = window_s
        self._starts: deque[float] = deque()
        self.total = 0

    def begin(self, now: float) -> None:
        """Note a start."""
        self._forget(now)
        self._starts.append(now)
        self.total += 1

    def delay(self, now: float) -> float:
        """Return the seconds from now, when the process has ended, to its next start."""
        self._forget(now)
        count = len(self._starts)
        if count >= self._limit:
            return self._starts[0] + self._window_s - now
        return 0.0 if count < 2 else FIRST_DELAY_S * 2 ** (count - 2)

    def is_spent(self, now: float) -> bool:
        """True while no further start fits into the window."""
        self._forget(now)
        return len(self._starts) >= self._limit

    def _forget(self, now: float) -> None:
        while self._starts and self._starts[0] + self._window_s <= now:
            self._starts.popleft()
