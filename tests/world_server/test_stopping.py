from __future__ import annotations

import signal
import threading
from types import FrameType

from world_server.stopping import StopSignals


def make() -> tuple[StopSignals, list[str]]:
    said: list[str] = []
    return StopSignals(
        lambda: said.append("first"), leave=lambda code: said.append(f"left {code}")
    ), said


def test_the_first_of_a_kind_is_passed_on_the_second_ends() -> None:
    stop, said = make()
    before: list[int] = []

    def earlier(number: int, _frame: FrameType | None) -> None:
        before.append(number)

    old = signal.signal(signal.SIGTERM, earlier)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        stop.install()
        signal.raise_signal(signal.SIGTERM)
        assert (said, before) == (["first"], [signal.SIGTERM])
        signal.raise_signal(signal.SIGTERM)
        assert said == ["first", f"left {128 + signal.SIGTERM}"]
        assert before == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, old)
        signal.signal(signal.SIGINT, interrupt)


def test_one_of_each_kind_is_one_wish() -> None:
    stop, said = make()
    stop.handle(signal.SIGINT, None)
    stop.handle(signal.SIGTERM, None)
    assert said == ["first", "first"]
    stop.handle(signal.SIGINT, None)
    assert said[-1] == f"left {128 + signal.SIGINT}"


def test_outside_the_main_thread_nothing_is_taken_over() -> None:
    stop, _ = make()
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=stop.install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
