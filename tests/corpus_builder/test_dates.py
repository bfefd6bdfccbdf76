from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.dates import day, instant


def at(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-01-15T08:00:00Z", at(2026, 1, 15, 8)),
        ("2026-01-15T08:00:00.999999Z", at(2026, 1, 15, 8)),
        ("2026-01-15t08:00:00z", at(2026, 1, 15, 8)),
        ("2026-01-15 08:00:00", at(2026, 1, 15, 8)),
        ("2026-01-15 08:00:00 UTC", at(2026, 1, 15, 8)),
        ("2026-01-15T08:00:00+02:00", at(2026, 1, 15, 6)),
        ("2026-01-15T08:00:00-0700", at(2026, 1, 15, 15)),
        ("2026-01-15T08:00", at(2026, 1, 15, 8)),
        ("2026-01-15", at(2026, 1, 15)),
        ("2026-01", at(2026, 1, 1)),
        (" 2026-01-15 ", at(2026, 1, 15)),
        ("20260115", at(2026, 1, 15)),
        ("20260115080000", at(2026, 1, 15, 8)),
        ("201404010000000000", at(2014, 4, 1)),
        ("Thu, 15 Jan 2026 08:00:00 GMT", at(2026, 1, 15, 8)),
        ("Thu, 15 Jan 2026 08:00:00 +0100", at(2026, 1, 15, 7)),
        ("Wed, 23 Sep 2020 16:44:20 +0200", at(2020, 9, 23, 14, 44, 20)),
        ("1768464000", at(2026, 1, 15, 8)),
        ("1768464000.5", at(2026, 1, 15, 8)),
        ("1768464000000", at(2026, 1, 15, 8)),
        (1768464000, at(2026, 1, 15, 8)),
        (1768464000.25, at(2026, 1, 15, 8)),
        (1768464000000, at(2026, 1, 15, 8)),
        ("1850-07-01", at(1850, 7, 1)),
        ("1969-12-31T23:59:59.5Z", -1),
    ],
)
def test_points_in_time(written: object, expected: int) -> None:
    assert instant(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        "", "2026", "yesterday", "15 January", "2026-13-01", "2026-02-30", "20261301", "abcdefgh",
        "2008-10-294T05:21:46-0700", "0000-00-00", "00000000", "x" * 100, "--------", "12345",
        None, True, False, [], {}, 12, 1e300, float("nan"), float("inf"),
    ],
)  # fmt: skip
def test_what_is_no_point_in_time(written: object) -> None:
    assert instant(written) is None


@given(st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9998, 1, 1)))  # noqa: DTZ001 - naive means UTC here
def test_iso_times_come_back(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)
    expected = int(moment.replace(tzinfo=UTC).timestamp())
    assert instant(moment.isoformat()) == expected
    assert instant(moment.isoformat() + "Z") == expected


@given(st.one_of(st.text(max_size=40), st.floats(), st.integers()))
def test_nothing_raises(value: object) -> None:
    found = instant(value)
    assert found is None or isinstance(found, int)


def test_days() -> None:
    assert day(2026, 1, 15) == at(2026, 1, 15)
    assert day(2026, 2, 30) is None
    assert day(0, 1, 1) is None
