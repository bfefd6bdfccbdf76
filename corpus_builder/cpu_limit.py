"""A limit on the CPU time of one page.

At the limit Python code is interrupted and the process lives on. Code that does not come back to
Python (a parser deep in C) is ended with the whole process a little later; the pool replaces it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

ENDED_BY = -int(signal.SIGPROF)
"""Exit code of a process that was ended because C code ran past the limit."""

_HARD_FACTOR = 2.0
_HARD_EXTRA = 1.0


class OverCpuError(BaseException):
    """The limit was reached; not an ``Exception``, so that no library takes it for its own."""


@dataclass(slots=True)
class Watch:
    """``fired`` is set when the limit was reached, even if something swallowed the error."""

    fired: bool = False


@contextmanager
def cpu_limit(seconds: float) -> Iterator[Watch]:
    """Limit the CPU time of the block; only in the main thread of a process.

    Raises:
        OverCpuError: the block used more than ``seconds`` of its own.
    """
    watch = Watch()

    def stop(_signal: int, _frame: FrameType | None) -> NoReturn:
        watch.fired = True
        raise OverCpuError

    before = signal.signal(signal.SIGVTALRM, stop)
    hard_before = signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, _HARD_FACTOR * seconds + _HARD_EXTRA)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield watch
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGVTALRM, before)
        signal.signal(signal.SIGPROF, hard_before)
