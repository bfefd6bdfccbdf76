"""What may be seen: columns over versions and passages, and the views made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world_core.errors import BadInputError, BadWorldError, DamagedFileError
from world_core.types import Bitmap, Instant

FOLDER = "columns"
HOSTS_NAME = "hosts.txt"
UNKNOWN: Instant = int(np.iinfo(np.int64).min)
"""Publication time of a version without one, in the column ``published``."""

_TYPES = {
    "version_page": np.int32,
    "valid_from": np.int64,
    "valid_to": np.int64,
    "published": np.int64,
    "language": np.int16,
    "host": np.int32,
    "group": np.int32,
    "passage_version": np.int32,
}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One value a version (V) or passage (P), in canonical order; see ``docs/format.md``.

    Attributes:
        version_page: (V,) int32, page number, ascending from 0 without gaps.
        valid_from: (V,) int64, time of the first capture with this content.
        valid_to: (V,) int64, time of the first capture that differed.
        published: (V,) int64, ``UNKNOWN`` where there is no date.
        language: (V,) int16, position in the manifest's languages.
        host: (V,) int32, position in ``hosts``.
        group: (V,) int32, duplicate group, -1 for none.
        passage_version: (P,) int32, version number, ascending.
        hosts: host names, sorted.
    """

    version_page: NDArray[np.int32]
    valid_from: NDArray[np.int64]
    valid_to: NDArray[np.int64]
    published: NDArray[np.int64]
    language: NDArray[np.int16]
    host: NDArray[np.int32]
    group: NDArray[np.int32]
    passage_version: NDArray[np.int32]
    hosts: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check types, shapes and order.

        Raises:
            BadInputError: a column is not as described.
        """
        fault = _fault(self)
        if fault:
            raise BadInputError(f"The column {fault}.")

    @classmethod
    def open(cls, folder: Path) -> Columns:
        """Map the columns of the world in the folder; they are read-only.

        Raises:
            DamagedFileError: a column is missing, unreadable or does not fit the others.
        """
        arrays = {name: _mapped(folder, name) for name in _TYPES}
        try:
            text = (folder / FOLDER / HOSTS_NAME).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise _damaged(folder, HOSTS_NAME, f"cannot be read ({error})") from error
        try:
            return cls(**arrays, hosts=tuple(text.split("\n")[:-1]))
        except BadInputError as error:
            raise _damaged(folder, "", f"do not fit together: {error.sentence}") from error

    def write(self, folder: Path) -> None:
        """Write the columns below the world's folder.

        Raises:
            OSError: the folder cannot be written.
        """
        target = folder / FOLDER
        target.mkdir(exist_ok=True)
        for name in _TYPES:
            np.save(target / f"{name}.npy", getattr(self, name), allow_pickle=False)
        text = "".join(f"{host}\n" for host in self.hosts)
        (target / HOSTS_NAME).write_text(text, encoding="utf-8", newline="\n")

    @property
    def version_count(self) -> int:
        """Number of versions."""
        return int(self.version_page.size)

    @property
    def passage_count(self) -> int:
        """Number of passages."""
        return int(self.passage_version.size)

    @property
    def page_count(self) -> int:
        """Number of pages; every page has a version."""
        return int(self.version_page[-1]) + 1 if self.version_count else 0


class View:
    """What a call may see: a set of versions, at most one of each page.

    Immutable and safe to share between threads; what is derived from the versions is computed once,
    when it is first asked for.
    """

    def __init__(self, columns: Columns, versions: Bitmap, *, clock: Instant | None = None) -> None:
        """Take a bitmap over versions, shape (V,), and the time it shows, if it is of one time.

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
        self._version_of: NDArray[np.int32] | None = None

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
        table = self._page_table()
        if not 0 <= page < table.size:
            raise BadWorldError(
                f"The columns have no page {page}; they hold {table.size}.",
                hint="Columns and page store are of different worlds: world-server check PATH.",
            )
        version = int(table[page])
        return None if version < 0 else version

    def published_between(self, start: Instant | None, end: Instant | None) -> View:
        """Return the part of this view published in [start, end), ``None`` meaning open.

        When either end is given, versions without a publication date are left out.
        """
        if start is None and end is None:
            return self
        published = self._columns.published
        inside = self._versions & (published != UNKNOWN)
        if start is not None:
            inside &= published >= start
        if end is not None:
            inside &= published < end
        return View(self._columns, inside, clock=self._clock)

    def _page_table(self) -> NDArray[np.int32]:
        """Return the visible version of each page, -1 for none, shape (pages,)."""
        with self._lock:
            if self._version_of is None:
                visible = np.flatnonzero(self._versions)
                pages = self._columns.version_page[visible]
                twice = np.flatnonzero(pages[1:] == pages[:-1])
                if twice.size:
                    first, second = visible[twice[0] : twice[0] + 2].tolist()
                    raise BadWorldError(
                        f"Page {pages[twice[0]]} has the versions {first} and {second} at once.",
                        hint="Their times of validity overlap: build the world again.",
                    )
                table = np.full(self._columns.page_count, -1, dtype=np.int32)
                table[pages] = visible
                self._version_of = table
            return self._version_of


def at_clock(columns: Columns, clock: Instant) -> View:
    """Return the view at a time: versions with ``valid_from <= clock < valid_to``.

    What was first captured after the clock does not exist in it.
    """
    valid = (columns.valid_from <= clock) & (clock < columns.valid_to)
    return View(columns, valid, clock=clock)


def _check_unit(unit: str) -> None:
    if unit not in {"version", "passage"}:
        raise BadInputError(f"There is no unit {unit!a}; the units are version and passage.")


def _frozen(bitmap: Bitmap) -> Bitmap:
    bitmap.flags.writeable = False
    return bitmap


def _mapped(folder: Path, name: str) -> NDArray[Any]:
    path = folder / FOLDER / f"{name}.npy"
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(folder, path.name, f"cannot be read ({error})") from error
    return array


def _damaged(folder: Path, name: str, what: str) -> DamagedFileError:
    return DamagedFileError(
        f"'{FOLDER}/{name}' of world {folder} {what}.",
        hint=f"See all damage with: world-server check {folder}.",
    )


def _fault(columns: Columns) -> str:
    """Return what is wrong with the first column that is not as described, "" if none is."""
    for name, kind in _TYPES.items():
        array = getattr(columns, name)
        wanted = columns.version_page.size if name != "passage_version" else array.size
        if array.dtype != kind or array.shape != (wanted,):
            shape = f"{array.dtype} of shape {array.shape}"
            return f"{name} is {shape}, not {np.dtype(kind).name} of shape ({wanted},)"
    pages, passages, count = columns.version_page, columns.passage_version, columns.version_count
    # Compared, not subtracted: a difference of damaged numbers could wrap around and look right.
    if count and (pages[0] != 0 or _falls(pages) or np.any(pages[1:] > pages[:-1] + 1)):
        return "version_page does not ascend from 0 without gaps"
    if passages.size and (passages[0] < 0 or passages[-1] >= count or _falls(passages)):
        return f"passage_version does not ascend within the {count} versions"
    if list(columns.hosts) != sorted(set(columns.hosts)):
        return "host has names that are not sorted"
    if count and not 0 <= columns.host.min() <= columns.host.max() < len(columns.hosts):
        return f"host leaves the {len(columns.hosts)} hosts"
    return ""


def _falls(numbers: NDArray[np.int32]) -> bool:
    return bool(np.any(numbers[1:] < numbers[:-1]))
