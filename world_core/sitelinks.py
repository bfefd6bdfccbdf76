"""Sitelinks: the pages of its own host that a host's root or the start of a section leads to.

They are chosen when a world is built, from the links of the page itself: those that most pages of
the host linked to at that time come first. What a view hides is left out when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from world_core.indexes.tables import damaged, mapped

FOLDER: Final = "sitelinks"

CANDIDATES: Final = 24
"""Targets kept of a version, so that enough are left where a view hides some."""

SHOWN: Final = 6
"""Sitelinks of a hit at most."""

_INDEXES: Final = frozenset({"", "index.html", "index.htm", "index.php", "index.xhtml"})
_TYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "versions": np.dtype(np.int32),
    "starts": np.dtype(np.int64),
    "targets": np.dtype(np.int32),
}


def is_start(key: str) -> bool:
    """Tell whether a canonical address is a host's root or the start of a section."""
    parts = urlsplit(key)
    return not parts.query and parts.path.rpartition("/")[2].lower() in _INDEXES


class SiteLinks:
    """Which pages each version that is a start links to, best known first; mapped from files.

    ``versions`` (n,) int32 ascending, ``starts`` (n + 1,) int64, ``targets`` (m,) int32: version
    ``versions[i]`` has the pages ``targets[starts[i]:starts[i + 1]]``.
    """

    def __init__(
        self,
        versions: NDArray[np.int32],
        starts: NDArray[np.int64],
        targets: NDArray[np.int32],
    ) -> None:
        self._versions = versions
        self._starts = starts
        self._targets = targets

    @classmethod
    def open(cls, folder: Path) -> SiteLinks:
        """Map the sitelinks of the world in the folder.

        Raises:
            DamagedFileError: a file is missing, unreadable or does not fit the others.
        """
        versions, starts, targets = (
            mapped(_path(folder, name), kind, 1) for name, kind in _TYPES.items()
        )
        if starts.size != versions.size + 1 or starts[0] or starts[-1] != targets.size:
            raise damaged(_path(folder, "starts"), "does not fit the others")
        return cls(versions, starts, targets)

    def of(self, version: int) -> list[int]:
        """Return the numbers of the pages that a version leads to, best known first."""
        place = int(np.searchsorted(self._versions, version))
        if place == self._versions.size or self._versions[place] != version:
            return []
        first, end = self._starts[place : place + 2].tolist()
        found: list[int] = self._targets[first:end].tolist()
        return found


def write_sitelinks(folder: Path, targets: Mapping[int, Sequence[int]]) -> None:
    """Write the targets of each version below the world's folder.

    Raises:
        OSError: the folder cannot be written.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    versions = sorted(version for version, pages in targets.items() if pages)
    counts = [len(targets[version]) for version in versions]
    values = {
        "versions": versions,
        "starts": np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
        "targets": [page for version in versions for page in targets[version]],
    }
    for name, kind in _TYPES.items():
        np.save(_path(folder, name), np.array(values[name], kind), allow_pickle=False)


def _path(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.npy"
