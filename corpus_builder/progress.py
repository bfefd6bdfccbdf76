"""What a person sees of a running build: one moving line on a terminal, else some lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

TERMINAL_SECONDS = 0.2
PLAIN_SECONDS = 10.0


class Progress:
    """Shows the stage, what is done of how much, the rate and the time left.

    Args:
        out: where the lines go; nothing is shown if ``None``.
        clock: seconds from any start, for tests.
    """

    def __init__(
        self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._clock = clock
        self._terminal = out is not None and out.isatty()
        self._stage = ""
        self._unit = ""
        self._total = 0
        self._done = 0
        self._began = 0.0
        self._shown = 0.0

    def start(self, stage: str, unit: str, total: int = 0) -> None:
        """Begin a stage that counts things of this unit; ``total`` 0 means unknown."""
        self._stage, self._unit, self._total, self._done = stage, unit, total, 0
        self._began = self._shown = self._clock()
        self._show()

    def tell(self, count: int) -> None:
        """Count things done."""
        self._done += count
        every = TERMINAL_SECONDS if self._terminal else PLAIN_SECONDS
        if self._clock() - self._shown >= every:
            self._show()

    def finish(self) -> float:
        """End the stage; return its seconds."""
        self._show(last=True)
        return self._clock() - self._began

    def line(self) -> str:
        """Return the line as it would be shown now."""
        seconds = self._clock() - self._began
        rate = self._done / seconds if seconds > 0 else 0.0
        text = f"{self._stage}: {self._done:,}"
        if self._total:
            text += f" of {self._total:,}"
        text += f" {self._unit}"
        if self._done and seconds >= 1:
            text += f", {rate:,.0f}/s"
            if self._total > self._done:
                text += f", {_duration((self._total - self._done) / rate)} left"
        return text

    def _show(self, *, last: bool = False) -> None:
        self._shown = self._clock()
        if self._out is None:
            return
        if self._terminal:
            self._out.write(f"\r\x1b[K{self.line()}" + ("\n" if last else ""))
        elif self._done or last:
            self._out.write(self.line() + "\n")
        self._out.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
