"""The columns of a world: one value a version or passage, mapped from its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world_core.errors import BadInputError, DamagedFileError
from world_core.types import Instant, Numbers

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

    def versions_of(self, pages: Numbers) -> tuple[Numbers, Numbers]:
        """Return the first version of each page and the one behind its last; shapes (n,)."""
        wanted = pages.astype(np.int32)  # of the column's type, else numpy copies the column
        first = np.searchsorted(self.version_page, wanted, side="left")
        return first, np.searchsorted(self.version_page, wanted, side="right")


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
