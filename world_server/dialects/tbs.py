"""Google's ``tbs`` parameter as a period of publication dates, counted from the world clock."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta

from world_core.types import Instant

_RECENT = re.compile(r"([hdwmy])(\d{0,4})")
_DAY = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}

Period = tuple[Instant | None, Instant | None]


def period(text: str, clock: Instant) -> Period:
    """Return first instant and end (exclusive) of the period; ``None`` where it is open.

    Known are ``qdr:h|d|w|m|y`` with an optional number, and ``cdr:1`` with ``cd_min`` and
    ``cd_max`` as month/day/year, both days included. Anything else has no effect.
    """
    parts = dict(part.strip().partition(":")[::2] for part in text.split(","))
    if "qdr" in parts:
        return _recent(parts["qdr"], clock), None
    if parts.get("cdr") == "1":
        last = _day(parts.get("cd_max", ""))
        end = None if last is None else last + 24 * 3600
        return _day(parts.get("cd_min", "")), end
    return None, None


def _recent(text: str, clock: Instant) -> Instant | None:
    found = _RECENT.fullmatch(text)
    if found is None:
        return None
    unit, number = found[1], int(found[2] or 1)
    try:
        now = datetime.fromtimestamp(clock, UTC)
        if unit in _HOURS:
            start = now - timedelta(hours=number * _HOURS[unit])
        else:
            start = _months_before(now, number * (12 if unit == "y" else 1))
        return int(start.timestamp())
    except (ValueError, OverflowError):
        return None  # before the year 1: everything is recent enough


def _months_before(moment: datetime, months: int) -> datetime:
    """Return the same day some months earlier, the last of that month if it has no such day."""
    year, month = divmod(moment.year * 12 + moment.month - 1 - months, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def _day(text: str) -> Instant | None:
    found = _DAY.fullmatch(text)
    if found is None:
        return None
    month, day, year = (int(part) for part in found.groups())
    try:
        return int(datetime(year, month, day, tzinfo=UTC).timestamp())
    except ValueError:
        return None
