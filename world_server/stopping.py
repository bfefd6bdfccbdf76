"""What a process does when it is told to end: not ready at once, and gone at the second word."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class StopSignals:
    """Runs a callback at the first SIGTERM or SIGINT; ends the process at the second of a kind.

    The handlers that were there before (the web server's, which let running calls finish) are
    called as well. Of a kind, because a terminal sends SIGINT to all processes and the supervisor
    then sends its workers SIGTERM: that is still one wish.
    """

    def __init__(
        self, on_first: Callable[[], None], *, leave: Callable[[int], object] = os._exit
    ) -> None:
        self._on_first = on_first
        self._leave = leave
        self._before: dict[int, Any] = {}
        self._seen: set[int] = set()

    def install(self) -> None:
        """Take over the signals; without effect outside the main thread, which has none."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self.handle)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take one signal."""
        if number in self._seen:
            self._leave(128 + number)
            return
        self._seen.add(number)
        self._on_first()
        before = self._before.get(number)
        if callable(before):
            before(number, frame)
