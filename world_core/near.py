"""Near-duplicates: which versions of other pages contain the text of a version, and how much of it.

They are measured when a world is built, by shingles (``shingles.py``), and never closed
transitively: what holds a text that holds another need not hold the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from world_core.indexes.tables import damaged, mapped

FOLDER: Final = "near"

_TYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "starts": np.dtype(np.int64),
    "others": np.dtype(np.int32),
    "shares": np.dtype(np.float32),
}


class NearFile:
    """The holders of every version, mapped from files.

    ``starts`` (V + 1,) int64, ``others`` and ``shares`` (n,) int32 and float32: ``others[i]``, for
    i from ``starts[v]`` up to ``starts[v + 1]``, contains the share ``shares[i]`` of the distinct
    shingles of version v. Without files nothing is known of any version.
    """

    def __init__(
        self,
        starts: NDArray[np.int64],
        others: NDArray[np.int32],
        shares: NDArray[np.float32],
    ) -> None:
        self._starts = starts
        self._others = others
        self._shares = shares

    @classmethod
    def open(cls, folder: Path) -> NearFile:
        """Map the near-duplicates of the world in the folder; they are read-only.

        Raises:
            DamagedFileError: a file is missing, unreadable or does not fit the others.
        """
        if not (folder / FOLDER).exists():
            return cls.unknown()
        arrays = {name: mapped(_path(folder, name), kind, 1) for name, kind in _TYPES.items()}
        if fault := _fault(**arrays):
            name, what = fault
            raise damaged(_path(folder, name), what)
        return cls(**arrays)

    @classmethod
    def unknown(cls) -> NearFile:
        """Return that of a world whose near-duplicates were not measured."""
        return cls(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    @property
    def version_count(self) -> int:
        """Number of versions they were measured for, 0 without files."""
        return int(self._starts.size) - 1

    @property
    def pair_count(self) -> int:
        """Number of pairs of a version and another that contains it."""
        return int(self._others.size)

    @property
    def held_count(self) -> int:
        """Number of versions that some other contains."""
        return int(np.count_nonzero(np.diff(self._starts)))

    def holders(self, version: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the versions of other pages that contain a version, and how much of it.

        Returns:
            Version numbers, ascending, and the share of the version's text that each contains, up
            to 1.0; shapes (n,). Empty for a version of which nothing is known.
        """
        first = end = 0
        if 0 <= version < self.version_count:
            first, end = self._starts[version : version + 2].tolist()
        return self._others[first:end], self._shares[first:end]


def write_near(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``starts``, ``others`` and ``shares`` of a ``NearFile`` below the world's folder.

    Raises:
        OSError: the folder cannot be written.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    for name, kind in _TYPES.items():
        np.save(_path(folder, name), arrays[name].astype(kind), allow_pickle=False)


def _path(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.npy"


def _fault(
    starts: NDArray[np.int64], others: NDArray[np.int32], shares: NDArray[np.float32]
) -> tuple[str, str] | None:
    """Return the file that does not fit the others, and why; None if all do."""
    if not starts.size or starts[0] != 0 or starts[-1] != others.size or _falls(starts):
        return "starts", "does not fit the others"
    if shares.size != others.size:
        return "shares", f"has {shares.size} values for {others.size} pairs"
    if others.size and not 0 <= others.min() <= others.max() < starts.size - 1:
        return "others", f"leaves the {starts.size - 1} versions"
    inside = np.ones(others.size, np.bool_)
    inside[starts[:-1][starts[:-1] < others.size]] = False
    if np.any((others[1:] <= others[:-1]) & inside[1:]):
        return "others", "does not ascend"
    if not np.all((shares > 0.0) & (shares <= 1.0)):
        return "shares", "leaves the range above 0 up to 1"
    return None


def _falls(numbers: NDArray[np.int64]) -> bool:
    return bool(np.any(numbers[1:] < numbers[:-1]))
