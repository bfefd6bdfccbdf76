from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time

import pytest

from corpus_builder.cpu_limit import ENDED_BY, OverCpuError, cpu_limit


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_code_within_the_limit_is_left_alone() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    with cpu_limit(5.0) as watch:
        spin(0.01)
    assert not watch.fired
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_code_over_the_limit_is_interrupted() -> None:
    with pytest.raises(OverCpuError), cpu_limit(0.05) as watch:
        spin(10.0)
    assert watch.fired
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_waiting_costs_no_cpu() -> None:
    with cpu_limit(0.05) as watch:
        time.sleep(0.2)
    assert not watch.fired


def test_a_swallowed_error_is_still_seen() -> None:
    with cpu_limit(0.05) as watch, contextlib.suppress(BaseException):
        spin(0.3)
    assert watch.fired


def test_errors_of_the_block_pass_and_the_timers_stop() -> None:
    with pytest.raises(KeyError), cpu_limit(5.0):
        raise KeyError
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_code_that_cannot_be_interrupted_ends_with_its_process() -> None:
    program = (
        "import signal\n"
        "from corpus_builder.cpu_limit import cpu_limit\n"
        "with cpu_limit(0.05):\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGVTALRM])\n"
        "    while True: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == ENDED_BY
