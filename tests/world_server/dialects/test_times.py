from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_server.dialects.times import iso, parse, spoken


def test_instants_are_written_in_utc() -> None:
    assert iso(1_614_816_000) == "2021-03-04T00:00:00Z"
    assert iso(1_614_859_199) == "2021-03-04T11:59:59Z"
    assert iso(0) == "1970-01-01T00:00:00Z"
    assert iso(-1) == "1969-12-31T23:59:59Z"


def test_days_are_spoken_in_english() -> None:
    assert spoken(1_614_816_000) == "Mar 4, 2021"
    assert spoken(1_609_459_199) == "Dec 31, 2020"


@pytest.mark.parametrize("instant", [None, 2**62, -(2**62), 10**12])
def test_what_is_unknown_or_out_of_range_is_left_out(instant: int | None) -> None:
    assert iso(instant) is None
    assert spoken(instant) is None


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2021-03-04", 1_614_816_000),
        (" 2021-03-04T00:00:00Z ", 1_614_816_000),
        ("2021-03-04T02:00:00+02:00", 1_614_816_000),
        ("2021-03-04T00:00:00", 1_614_816_000),
        ("20210304", 1_614_816_000),
    ],
)
def test_iso_days_and_instants_are_read(text: str, instant: int) -> None:
    assert parse(text) == instant


@pytest.mark.parametrize("text", ["", "yesterday", "2021", "2021-13-01", "1614816000", "\0"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_what_is_written_is_read_back(instant: int) -> None:
    written = iso(instant)
    assert written is not None
    assert parse(written) == instant
