from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_server.dialects.tbs import period


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


CLOCK = at("2024-03-31T12:00:00")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("qdr:h", "2024-03-31T11:00:00"),
        ("qdr:h12", "2024-03-31T00:00:00"),
        ("qdr:d", "2024-03-30T12:00:00"),
        ("qdr:w", "2024-03-24T12:00:00"),
        ("qdr:w2", "2024-03-17T12:00:00"),
        ("qdr:m", "2024-02-29T12:00:00"),
        ("qdr:m2", "2024-01-31T12:00:00"),
        ("qdr:m13", "2023-02-28T12:00:00"),
        ("qdr:y", "2023-03-31T12:00:00"),
        ("qdr:y2", "2022-03-31T12:00:00"),
        ("qdr:d,sbd:1", "2024-03-30T12:00:00"),
        ("sbd:1, qdr:d", "2024-03-30T12:00:00"),
    ],
)
def test_recent(text: str, start: str) -> None:
    assert period(text, CLOCK) == (at(start), None)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("cdr:1,cd_min:1/2/2021,cd_max:01/02/2021", "2021-01-02", "2021-01-03"),
        ("cdr:1,cd_min:12/31/2020,cd_max:1/1/2021", "2020-12-31", "2021-01-02"),
        ("cdr:1,cd_min:12/31/2020", "2020-12-31", None),
        ("cdr:1,cd_max:1/1/2021", None, "2021-01-02"),
        ("cdr:1,cd_min:2/30/2021,cd_max:1/1/2021", None, "2021-01-02"),
    ],
)
def test_between(text: str, start: str | None, end: str | None) -> None:
    assert period(text, CLOCK) == (start and at(start), end and at(end))


@pytest.mark.parametrize(
    "text",
    ["", "qdr", "qdr:", "qdr:x", "qdr:d1.5", "qdr:-d", "cdr:0,cd_min:1/1/2020", "cdr:1", "sbd:1",
     "li:1", "qdr:y9999", "cdr:1,cd_min:2021-01-01", "qdr:\u0661", ":::,,,"],
)  # fmt: skip
def test_what_is_not_known_has_no_effect(text: str) -> None:
    assert period(text, CLOCK) == (None, None)


@given(st.text(max_size=60), st.integers(-(10**10), 10**12))
def test_no_text_raises(text: str, clock: int) -> None:
    period(text, clock)
    period(f"qdr:{text}", clock)
    period(f"cdr:1,cd_min:{text},cd_max:{text}", clock)


@given(st.sampled_from("hdwmy"), st.integers(1, 50), st.integers(10**9, 2 * 10**9))
def test_a_recent_period_starts_before_the_clock_and_grows(
    unit: str, number: int, clock: int
) -> None:
    near = period(f"qdr:{unit}{number}", clock)[0]
    far = period(f"qdr:{unit}{number + 1}", clock)[0]
    assert near is not None
    assert far is not None
    assert far < near < clock
