"""Read points in time as they stand in headers, dumps and pages."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from world_core.types import Instant

_DIGITS = re.compile(r"(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?\d{0,4}")
_EPOCH = re.compile(r"-?\d{9,10}(?:\.\d+)?")
_EPOCH_MILLISECONDS = re.compile(r"-?\d{12,13}")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_FRACTION = re.compile(r"[.,](\d+)(?=$|[Z+-])")
_OFFSET = re.compile(r"([+-]\d{2})(\d{2})$")


def instant(value: object) -> Instant | None:
    """Return a written point in time as whole seconds UTC, None if it is none.

    Understood: ISO 8601 dates and times (without a zone: UTC), mail and HTTP dates, the archives'
    14 digits, seconds or milliseconds since 1970 as a number or text. A year and month is the
    month's first day; a bare year is no point in time.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        value = format(value, ".0f") if abs(value) < 1e15 else ""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not 6 <= len(text) <= 64:
        return None
    return _number(text) or _iso(text) or _mail(text)


def day(year: int, month: int, number: int) -> Instant | None:
    """Return the start of a day in UTC, None if there is no such day."""
    try:
        return int(datetime(year, month, number, tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _number(text: str) -> Instant | None:
    if _EPOCH.fullmatch(text):
        return int(float(text))
    if _EPOCH_MILLISECONDS.fullmatch(text):
        return int(text) // 1000
    found = _DIGITS.fullmatch(text)
    if not found:
        return None
    parts = [int(part) if part else 0 for part in found.groups()]
    return _utc(parts)


def _utc(parts: list[int]) -> Instant | None:
    year, month, number, hour, minute, second = parts
    try:
        moment = datetime(year, month, number, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp())


def _iso(text: str) -> Instant | None:
    month = _MONTH.fullmatch(text)
    if month:
        return day(int(month[1]), int(month[2]), 1)
    text = _FRACTION.sub("", text.upper().removesuffix(" UTC"))
    text = _OFFSET.sub(r"\1:\2", text) if "T" in text or ":" in text else text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return _seconds(moment)


def _mail(text: str) -> Instant | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return _seconds(moment)


def _seconds(moment: datetime) -> Instant | None:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return int(moment.timestamp() // 1)
    except (OverflowError, ValueError):
        return None
