from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from world_core.types import Timings
from world_server.counts import GAUGES, Counts
from world_server.engine_protocol import CountsTold, decoded, encoded
from world_server.metrics import TABLE, Metrics, render

ROUTES = st.sampled_from(("search", "fetch", "health"))
EVENTS = st.lists(
    st.tuples(
        ROUTES, st.sampled_from(("ok", "empty", "internal")), st.sampled_from((0.001, 0.3, 99))
    ),
    max_size=20,
)


def counted(events: Sequence[tuple[str, str, float]], running: int = 0) -> Counts:
    """Return the counts of a process that these requests came to."""
    metrics = Metrics()
    for route, outcome, seconds in events:
        metrics.count_request(route, outcome, seconds)
        metrics.count_steps(Timings({"encode": 0.25}))
    return metrics.counts(running=running, waiting=1, refused=2, expired=3)


@given(EVENTS, EVENTS)
def test_two_processes_add_up_to_one_that_did_it_all(
    first: list[tuple[str, str, float]], second: list[tuple[str, str, float]]
) -> None:
    total = Counts()
    total.add(counted(first))
    total.add(counted(second))
    whole = counted(first + second)
    assert total.requests == whole.requests
    assert total.histogram == whole.histogram
    assert total.step_calls == whole.step_calls
    assert total.step_seconds == whole.step_seconds
    assert total.plain["world_waiting_calls"] == 2
    assert total.plain["world_counted_processes"] == 2
    lines = render(total).decode().splitlines()
    assert [line for line in lines if line.startswith("world_request_seconds_bucket")] == [
        line
        for line in render(whole).decode().splitlines()
        if line.startswith("world_request_seconds_bucket")
    ]


@given(EVENTS)
def test_counts_can_be_sent(events: list[tuple[str, str, float]]) -> None:
    counts = counted(events, running=7)
    assert decoded(CountsTold, encoded(CountsTold(counts))).counts == counts
    assert render(decoded(CountsTold, encoded(CountsTold(counts))).counts) == render(counts)


def test_adding_leaves_what_was_added_alone() -> None:
    one, other = counted([("search", "ok", 1.0)]), counted([("search", "ok", 2.0)])
    one.add(other)
    assert one.requests == {("search", "ok"): 2}
    assert other.requests == {("search", "ok"): 1}


def test_of_a_process_that_ended_the_gauges_go() -> None:
    counts = counted([("search", "ok", 1.0)], running=5)
    settled = counts.settled()
    assert settled.requests == counts.requests
    assert settled.plain == {
        "world_refused_total": 2,
        "world_expired_total": 3,
        "world_client_left_total": 0,
        "world_degraded_total": 0,
    }
    assert counts.plain["world_running_calls"] == 5


def test_the_gauges_are_those_of_the_table_without_labels() -> None:
    plain = counted([]).plain
    assert {name for name in plain if TABLE[name][0] == "gauge"} == set(GAUGES)
