"""A passing folder of links to an index's files, for an engine that writes beside what it reads."""

from __future__ import annotations

import errno
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from world_core.errors import IndexFailedError

REMOVALS = 200
"""How often the folder is tried to be removed, 10 ms apart."""


@contextmanager
def linked(folder: Path) -> Iterator[Path]:
    """Give a folder of links to the files of an index, and remove it in the end.

    tantivy makes a lock file beside the files it opens, which a read-only world does not allow.

    Raises:
        IndexFailedError: the links cannot be made or removed.
    """
    try:
        place = Path(tempfile.mkdtemp(prefix="lexical-"))
        try:
            for file in folder.iterdir():
                (place / file.name).symlink_to(file.absolute())
            yield place
        finally:
            remove(place)
    except OSError as error:
        raise IndexFailedError(f"The index {folder} cannot be opened: {error}.") from error


def remove(place: Path) -> None:
    """Remove a folder in which a thread of the engine may still make and drop its lock file.

    Raises:
        OSError: the folder cannot be removed, or files came back each time.
    """
    left = REMOVALS
    while place.exists():
        try:
            shutil.rmtree(place)
        except OSError as error:
            left -= 1
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or not left:
                raise
            time.sleep(0.01)
