from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_server.restarts import Restarts


def test_the_first_restart_is_at_once_then_pauses_grow() -> None:
    restarts = Restarts(limit=5, window_s=60.0)
    pauses = []
    for _ in range(5):
        pauses.append(restarts.delay(0.0))
        restarts.begin(0.0)
    assert pauses == [0.0, 0.0, 0.5, 1.0, 2.0]
    assert restarts.total == 5


def test_a_full_window_is_waited_for() -> None:
    restarts = Restarts(limit=2, window_s=60.0)
    restarts.begin(10.0)
    restarts.begin(30.0)
    assert restarts.is_spent(69.0)
    assert restarts.delay(69.0) == 1.0
    assert not restarts.is_spent(70.0)
    assert restarts.delay(70.0) == 0.0


def test_a_process_that_lived_long_is_started_again_at_once() -> None:
    restarts = Restarts()
    for number in range(20):
        assert restarts.delay(number * 100.0) == 0.0
        restarts.begin(number * 100.0)


@pytest.mark.parametrize("limit", [1, 5])
@given(lives=st.lists(st.floats(0.0, 30.0), max_size=40))
def test_no_window_holds_more_starts_than_allowed(limit: int, lives: list[float]) -> None:
    restarts = Restarts(limit=limit, window_s=60.0)
    now, starts = 1_000.0, []
    for life in lives:
        pause = restarts.delay(now)
        assert 0.0 <= pause <= 60.0
        now += pause
        assert not restarts.is_spent(now + 1e-6)
        restarts.begin(now)
        starts.append(now)
        now += life
    for start in starts:
        assert sum(start <= other < start + 60.0 - 1e-6 for other in starts) <= limit
