"""A folder of converted models: each made once on a machine, checked whenever it is used."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from world_core.errors import MissingPartError

_LOG = logging.getLogger(__name__)


def default_folder() -> Path:
    """Return ``searchworld/models`` in the user's cache: XDG_CACHE_HOME, else ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification tells to ignore a value that is no absolute path.
    home = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return home / "searchworld" / "models"


def cached(folder: Path, name: str, make: Callable[[], bytes]) -> Path:
    """Return the file of this name in the folder, made if it is absent or damaged.

    The digest of the content lies beside it. Processes that make the same file at once all
    succeed: each writes beside and renames, and they write the same bytes.

    Args:
        folder: made when it is not there.
        name: stands for all that decides the content.
        make: returns the content.

    Raises:
        MissingPartError: the folder cannot be written.
    """
    path = folder / name
    note = folder / f"{name}.sha256"
    if path.is_file() and note.is_file():
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest == note.read_text(encoding="utf-8").strip():
            return path
        _LOG.warning("The file %s is damaged and is made again.", path)
    content = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
        _replace(note, f"{hashlib.sha256(content).hexdigest()}\n".encode())
    except OSError as error:
        raise MissingPartError(
            f"The converted model {path} cannot be written: {error.strerror}.",
            hint="Set XDG_CACHE_HOME to a folder that can be written and has 200 MB free.",
        ) from error
    return path


def _replace(path: Path, content: bytes) -> None:
    """Write the file in one step: a reader sees the old content, the new one or no file."""
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise
