from __future__ import annotations

import io

import pytest

from corpus_builder.progress import Progress, _duration


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_line_says_rate_and_time_left() -> None:
    clock = Clock()
    progress = Progress(None, clock)
    progress.start("read", "records", 1000)
    clock.now += 10
    progress.tell(200)
    assert progress.line() == "read: 200 of 1,000 records, 20/s, 40 s left"


def test_without_a_total_there_is_no_time_left() -> None:
    clock = Clock()
    progress = Progress(None, clock)
    progress.start("read", "records")
    progress.tell(1234)
    assert progress.line() == "read: 1,234 records"
    clock.now += 2
    assert progress.line() == "read: 1,234 records, 617/s"


def test_a_file_gets_plain_lines_now_and_then() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress(out, clock)
    progress.start("read", "records", 100)
    for _ in range(50):
        clock.now += 0.5
        progress.tell(1)
    assert progress.finish() == 25.0
    lines = out.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[-1] == "read: 50 of 100 records, 2/s, 25 s left"
    assert "\r" not in out.getvalue()


def test_a_terminal_gets_one_moving_line_a_stage() -> None:
    clock, out = Clock(), Terminal()
    progress = Progress(out, clock)
    for stage in ("read", "snapshot"):
        progress.start(stage, "things", 2)
        for _ in range(2):
            clock.now += 1.0
            progress.tell(1)
        progress.finish()
    assert out.getvalue().count("\n") == 2
    assert out.getvalue().count("\r\x1b[K") == 8


def test_nothing_is_shown_without_a_file() -> None:
    progress = Progress()
    progress.start("read", "records")
    progress.tell(1)
    assert progress.finish() >= 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (61, "1 min 01 s"), (3600, "1 h 00 min"), (7384, "2 h 03 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert _duration(seconds) == text
