"""The engine process as its parent sees it; small programs stand for it, the real one once."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from world_core.errors import DamagedFileError
from world_server.engine_keeper import GOOD_S, PAUSES, EngineKeeper
from world_server.engine_protocol import Kind, encoded, told
from world_server.errors import EngineLostError, SettingsError
from world_server.frames import Frame, packed

PROGRAM = """
import signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
parent = socket.socket(fileno=int(sys.argv[4]))
{deed}
"""
READY = f"parent.send({packed(Frame(0, Kind.READY))!r}); parent.recv(1)"
REFUSAL = encoded(told(DamagedFileError("It is broken.")))
REFUSES = f"parent.send({packed(Frame(0, Kind.ERROR, REFUSAL))!r})"
NEVER_READY = "time.sleep(600)"
DEAF = f"parent.send({packed(Frame(0, Kind.READY))!r}); time.sleep(600)"

Make = Callable[[str], EngineKeeper]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return the time as the keepers see it."""
    return Clock()


@pytest.fixture
def make(clock: Clock) -> Iterator[Make]:
    """Return a function that makes a keeper of a program; all are stopped in the end."""
    made: list[EngineKeeper] = []

    def keeper(deed: str) -> EngineKeeper:
        program = PROGRAM.format(deed=deed)
        one = EngineKeeper(command=(sys.executable, "-S", "-c", program), clock=clock)
        made.append(one)
        return one

    yield keeper
    for one in made:
        one.stop(lambda: True)


def never() -> bool:
    return False


def until(check: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def looked(keeper: EngineKeeper) -> EngineKeeper:
    """Let the keeper look, and return it."""
    keeper.look()
    return keeper


def killed(keeper: EngineKeeper) -> None:
    """Kill the process and wait until the system says it is dead; the keeper has yet to look."""
    assert keeper._process is not None
    keeper._process.kill()
    keeper._process.wait()


def test_it_is_ready_when_it_says_so_and_ends_when_its_parent_lets_go(make: Make) -> None:
    keeper = make(READY)
    assert keeper.start(never)
    assert keeper.is_ready
    process = keeper._process
    assert process is not None
    folder = keeper.address.parent
    assert folder.stat().st_mode & 0o777 == 0o700
    keeper.stop(never)
    assert process.returncode == 0
    assert not folder.exists()
    assert keeper.pid is None
    keeper.stop(never)


def test_one_that_cannot_serve_says_why(make: Make) -> None:
    with pytest.raises(DamagedFileError, match="It is broken"):
        make(REFUSES).start(never)


def test_one_that_ends_without_a_word_is_told_by_its_code(make: Make) -> None:
    with pytest.raises(EngineLostError, match="ended with 7 before it was ready"):
        make("sys.exit(7)").start(never)


def test_waiting_for_it_can_be_broken_off(make: Make) -> None:
    keeper = make(NEVER_READY)
    assert not keeper.start(lambda: True)
    process = keeper._process
    assert process is not None
    keeper.stop(never)
    assert process.returncode == -signal.SIGKILL, "it had taken nothing"


def test_one_that_does_not_end_is_killed_at_a_further_word(make: Make) -> None:
    keeper = make(DEAF)
    assert keeper.start(never)
    process = keeper._process
    assert process is not None
    words = iter([False, False, True])
    keeper.stop(lambda: next(words))
    assert process.returncode == -signal.SIGKILL


def test_one_that_dies_is_started_again_and_again_after_a_pause(
    make: Make, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = make(READY)
    assert keeper.start(never)
    with caplog.at_level(logging.ERROR, logger="world_server"):
        for pause in PAUSES[:2]:
            first = keeper.pid
            killed(keeper)
            assert not looked(keeper).is_ready
            if pause:
                clock.now += pause - 0.5
                assert looked(keeper).pid is None, "too early"
                clock.now += 0.5
            assert looked(keeper).pid not in (None, first)
            until(lambda: looked(keeper).is_ready)
    assert "ended with -9 (no reason given); another is started in 0 s" in caplog.text
    assert "ended with -9 (no reason given); another is started in 1 s" in caplog.text


def ends(keeper: EngineKeeper, clock: Clock, *, good_for: float = 0.0) -> None:
    """Let the process end once it was ready, and the next one be started and be ready."""
    clock.now += good_for
    killed(keeper)
    keeper.look()
    clock.now += max(PAUSES)
    until(lambda: looked(keeper).is_ready)


def test_one_that_dies_again_and_again_is_given_up(make: Make, clock: Clock) -> None:
    keeper = make(READY)
    assert keeper.start(never)
    for _ in PAUSES:
        ends(keeper, clock)
    killed(keeper)
    with pytest.raises(EngineLostError, match=r"ended 6 times in a row, last with -9\."):
        keeper.look()


def test_a_good_minute_begins_a_new_row(make: Make, clock: Clock) -> None:
    keeper = make(READY)
    assert keeper.start(never)
    for _ in range(len(PAUSES) + 2):
        ends(keeper, clock, good_for=GOOD_S)
    assert keeper.is_ready


def test_one_that_can_serve_no_more_is_given_up_with_its_reason(make: Make, clock: Clock) -> None:
    keeper = make(REFUSES)
    keeper._spawn()

    def look_later() -> bool:
        clock.now += max(PAUSES)
        keeper.look()
        return False

    with pytest.raises(EngineLostError) as caught:
        until(look_later)
    assert caught.value.sentence == (
        "The engine process ended 6 times in a row, last with 0: It is broken."
    )


def test_a_folder_with_a_long_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(SettingsError, match="too long for the address of a socket"):
        EngineKeeper()
    assert list(deep.iterdir()) == []
