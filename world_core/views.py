"""What may be seen: views of a world's versions, each made of another."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import TypeVar

import numpy as np

from world_core.columns import FOLDER, HOSTS_NAME, UNKNOWN, Columns
from world_core.errors import BadInputError, BadWorldError
from world_core.types import Bitmap, Instant, Numbers
from world_core.view_memory import ViewMemory, digest_of

__all__ = ["FOLDER", "HOSTS_NAME", "UNKNOWN", "Columns", "View", "at_clock"]

Given = TypeVar("Given", bytes, Numbers)


class View:
    """What a call may see: a set of versions, at most one of each page.

    Immutable and safe to share between threads. The methods that narrow a view give a new one, and
    hold for pages: since a view shows one version of a page, what hides the version hides the page.
    Narrowing a view again in the same way gives the same object, with all that engines have made
    of it, as long as the memory of the world's views holds it.
    """

    def __init__(
        self,
        columns: Columns,
        versions: Bitmap,
        *,
        clock: Instant | None = None,
        memory: ViewMemory[View] | None = None,
        key: bytes = b"",
    ) -> None:
        """Take a bitmap over versions, shape (V,), and the time it shows, if it is of one time.

        ``memory`` and ``key`` belong to views made of other views.

        Raises:
            BadInputError: the bitmap has another shape or type.
        """
        if versions.shape != (columns.version_count,) or versions.dtype != np.bool_:
            raise BadInputError(
                f"A view needs {columns.version_count} flags, not {versions.dtype} of shape "
                f"{versions.shape}."
            )
        self._columns = columns
        self._clock = clock
        self._versions = _frozen(versions.copy())
        self._count = int(np.count_nonzero(self._versions))
        self._lock = Lock()
        self._passages: Bitmap | None = None
        self._memory = ViewMemory(columns.hosts) if memory is None else memory
        self._key = key or digest_of(b"versions", self._versions)

    @property
    def clock(self) -> Instant | None:
        """The time that the view shows; ``None`` when it is of no single time."""
        return self._clock

    @property
    def versions(self) -> Bitmap:
        """The visible versions, shape (V,), read-only."""
        return self._versions

    @property
    def count(self) -> int:
        """Number of visible versions, which is that of visible pages."""
        return self._count

    def units(self, unit: str) -> Bitmap:
        """Return the visible units, shape (V,) for "version", (P,) for "passage", read-only.

        Raises:
            BadInputError: another unit.
        """
        _check_unit(unit)
        if unit == "version":
            return self._versions
        with self._lock:
            if self._passages is None:
                self._passages = _frozen(self._versions[self._columns.passage_version])
            return self._passages

    def allowed(self, unit: str) -> Bitmap | None:
        """Return ``units(unit)`` for an index, or None when all versions are visible.

        Raises:
            BadInputError: another unit than version or passage.
        """
        _check_unit(unit)
        return self.units(unit) if self._count < self._columns.version_count else None

    def version_of(self, page: int) -> int | None:
        """Return the visible version of a page, None when the view has none.

        Raises:
            BadWorldError: there is no such page, or two of its versions are visible.
        """
        if not 0 <= page < self._columns.page_count:
            raise BadWorldError(
                f"The columns have no page {page}; they hold {self._columns.page_count}.",
                hint="Columns and page store are of different worlds: world-server check PATH.",
            )
        first, end = self._columns.versions_of(np.array([page]))
        visible = (first + np.flatnonzero(self._versions[first[0] : end[0]])).tolist()
        if len(visible) > 1:
            raise _twice(page, visible)
        return visible[0] if visible else None

    def world_at(self, clock: Instant) -> View:
        """Return the whole world at a time, whatever this view leaves out; see ``at_clock``."""
        columns = self._columns

        def versions() -> Bitmap:
            return (columns.valid_from <= clock) & (clock < columns.valid_to)

        key = digest_of(b"clock", str(clock).encode())
        view = self._memory.get(
            key, lambda: View(columns, versions(), clock=clock, memory=self._memory, key=key)
        )
        view.check_pages()
        return view

    def without_pages(self, pages: Numbers) -> View:
        """Return this view without some pages: the effect of a mask.

        ``pages`` are page numbers in any order, some of them perhaps more than once.

        Raises:
            BadInputError: there is no such page.
        """
        return self._narrowed(b"without_pages", self._sorted(pages), self._hide)

    def only_pages(self, pages: Numbers) -> View:
        """Return what this view shows of some pages, given as in :meth:`without_pages`."""
        return self._narrowed(b"only_pages", self._sorted(pages), self._show)

    def on_sites(self, sites: Collection[str]) -> View:
        """Return the pages of any of the sites: of a host of that name or a subdomain of it.

        Names are in the form of canonical addresses (``urls.host_of``).
        """
        return self._narrowed(b"on_sites", _names(sites), lambda _: self._at(sites))

    def off_sites(self, sites: Collection[str]) -> View:
        """Return the pages of none of the sites, named as in :meth:`on_sites`."""
        return self._narrowed(b"off_sites", _names(sites), lambda _: ~self._at(sites))

    def in_languages(self, languages: Collection[int]) -> View:
        """Return the pages in any of the languages, given by position in the manifest's list."""
        wanted = np.unique(np.fromiter(languages, dtype=np.int64))
        return self._narrowed(
            b"in_languages", wanted, lambda chosen: np.isin(self._columns.language, chosen)
        )

    def forget(self) -> None:
        """Drop the views that were made of views of this world, so that its files can be freed."""
        self._memory.forget()

    def published_between(self, start: Instant | None, end: Instant | None) -> View:
        """Return the part of this view published in [start, end), ``None`` meaning open.

        When either end is given, versions without a publication date are left out.
        """
        if start is None and end is None:
            return self

        def inside(_: object) -> Bitmap:
            published = self._columns.published
            dated: Bitmap = published != UNKNOWN
            if start is not None:
                dated &= published >= start
            if end is not None:
                dated &= published < end
            return dated

        return self._narrowed(b"published_between", _names([f"{start} {end}"]), inside)

    def within(self, other: View) -> View:
        """Return what both views of one world show.

        Its time is that of this view; where the other shows another time, it has none.

        Raises:
            BadInputError: the views are of different worlds.
        """
        if other._columns is not self._columns:
            raise BadInputError("Two views of different worlds have nothing in common.")
        clock = self._clock if other._clock in (None, self._clock) else None
        key = digest_of(b"within", self._key, other._key)
        return self._memory.get(
            key,
            lambda: View(
                self._columns,
                self._versions & other._versions,
                clock=clock,
                memory=self._memory,
                key=key,
            ),
        )

    def check_pages(self) -> None:
        """Check that no page shows two versions.

        Raises:
            BadWorldError: one does.
        """
        visible = np.flatnonzero(self._versions)
        pages = self._columns.version_page[visible]
        twice = np.flatnonzero(pages[1:] == pages[:-1])
        if twice.size:
            raise _twice(int(pages[twice[0]]), visible[twice[0] : twice[0] + 2].tolist())

    def _narrowed(self, name: bytes, given: Given, inside: Callable[[Given], Bitmap]) -> View:
        key = digest_of(name, self._key, given)
        return self._memory.get(
            key,
            lambda: View(
                self._columns,
                self._versions & inside(given),
                clock=self._clock,
                memory=self._memory,
                key=key,
            ),
        )

    def _sorted(self, pages: Numbers) -> Numbers:
        numbers: Numbers = np.unique(np.asarray(pages, dtype=np.int64))
        count = self._columns.page_count
        if numbers.size and not 0 <= numbers[0] <= numbers[-1] < count:
            wrong = numbers[0] if numbers[0] < 0 else numbers[-1]
            raise BadInputError(f"There is no page {wrong} in a world of {count}.")
        return numbers

    def _show(self, pages: Numbers) -> Bitmap:
        first, end = self._columns.versions_of(pages)
        # A step up where a page's versions begin and one down behind them.
        steps = np.zeros(self._columns.version_count + 1, dtype=np.int8)
        np.add.at(steps, first, 1)
        np.add.at(steps, end, -1)
        shown: Bitmap = np.cumsum(steps[:-1], dtype=np.int8) > 0
        return shown

    def _hide(self, pages: Numbers) -> Bitmap:
        return ~self._show(pages)

    def _at(self, sites: Collection[str]) -> Bitmap:
        chosen = np.zeros(len(self._columns.hosts), dtype=np.bool_)
        for site in sites:
            chosen[self._memory.hosts.under(site)] = True
        flags: Bitmap = chosen[self._columns.host]
        return flags


def at_clock(columns: Columns, clock: Instant) -> View:
    """Return the view at a time: versions with ``valid_from <= clock < valid_to``.

    What was first captured after the clock does not exist in it.

    Raises:
        BadWorldError: two versions of a page are valid at once.
    """
    return View(columns, np.zeros(columns.version_count, dtype=np.bool_)).world_at(clock)


def _names(texts: Collection[str]) -> bytes:
    return "\n".join(sorted(set(texts))).encode("utf-8", "surrogatepass")


def _twice(page: int, versions: list[int]) -> BadWorldError:
    return BadWorldError(
        f"Page {page} has the versions {versions[0]} and {versions[1]} at once.",
        hint="Their times of validity overlap: build the world again.",
    )


def _check_unit(unit: str) -> None:
    if unit not in {"version", "passage"}:
        raise BadInputError(f"There is no unit {unit!a}; the units are version and passage.")


def _frozen(bitmap: Bitmap) -> Bitmap:
    bitmap.flags.writeable = False
    return bitmap
