"""What a source yields: captures, and the losses it had to leave out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from world_core.types import Instant, Link


@dataclass(frozen=True, slots=True)
class Capture:
    """One HTTP response as crawled, or one row of a page dump.

    A crawled response has ``body`` (transfer and content coding already undone) and ``mime``; a
    dump row has ``text`` and perhaps ``title``, ``language``, ``published``. ``location`` is the
    redirect target of a 3xx. ``origin`` and ``offset`` say where it stood: file name, and byte
    offset or line number.
    """

    url: str
    time: Instant
    origin: str
    offset: int
    status: int = 200
    mime: str = "text/html"
    charset: str = ""
    location: str = ""
    body: bytes | None = None
    text: str | None = None
    title: str = ""
    language: str = ""
    published: Instant | None = None
    modified: Instant | None = None
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that was left out, with the reason; the build report counts these.

    ``note`` marks what is worth telling but costs no page (a whole-file gzip, say): it is counted
    apart and does not make a build "finished with losses".
    """

    origin: str
    offset: int
    reason: str
    url: str = ""
    note: bool = False


@dataclass(frozen=True, slots=True)
class Shard:
    """A slice of a source's input that one worker reads alone: a kind, a path and arguments."""

    kind: str
    path: Path
    arguments: dict[str, str] = field(default_factory=dict)


class Source(Protocol):
    """A kind of input."""

    def shards(self) -> list[Shard]:
        """Return the input's slices in a fixed order.

        Raises:
            BadSourceError: the input is missing or not of this kind.
        """
        ...

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield the slice's captures and losses in input order; never raises on a bad record."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A capture after extraction: one page content at one time, or a redirect, or a dead link.

    Exactly one of these holds: ``redirect`` is set (an alias), ``status`` is not 200 (a dead link),
    or ``text`` is the content. ``key`` is the canonical URL. ``canonical`` is the key the page
    itself names as its address, "" if none.
    """

    key: str
    url: str
    time: Instant
    origin: str
    offset: int
    status: int = 200
    redirect: str = ""
    canonical: str = ""
    title: str = ""
    text: str = ""
    language: str = "und"
    published: Instant | None = None
    modified: Instant | None = None
    links: tuple[Link, ...] = ()
    mime: str = "text/html"
    declared: bool = False
    """True for a dump row, which is a page by declaration: equal text does not make it an alias."""
