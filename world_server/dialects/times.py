"""Instants as the dialects write them, and dates as callers write them."""

from __future__ import annotations

from datetime import UTC, datetime

from world_core.types import Instant

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def iso(instant: Instant | None) -> str | None:
    """Return the instant as ``2021-03-04T00:00:00Z``; ``None`` if unknown or out of range."""
    moment = _moment(instant)
    return None if moment is None else moment.replace(tzinfo=None).isoformat() + "Z"


def spoken(instant: Instant | None) -> str | None:
    """Return the day as ``Mar 4, 2021``, whatever the locale; ``None`` as for :func:`iso`."""
    moment = _moment(instant)
    if moment is None:
        return None
    return f"{_MONTHS[moment.month - 1]} {moment.day}, {moment.year}"


def parse(text: str) -> Instant:
    """Return the instant of an ISO 8601 day (its first second) or instant; UTC if no zone is given.

    Raises:
        ValueError: the text is neither.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp())


def _moment(instant: Instant | None) -> datetime | None:
    if instant is None:
        return None
    try:
        return datetime.fromtimestamp(instant, UTC)
    except (ValueError, OverflowError, OSError):
        return None
