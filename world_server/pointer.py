"""A world on the command line: a world's folder, or a folder whose pointer names the version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from world_core.errors import BadInputError, ForeignWorldError
from world_core.manifest import MANIFEST_NAME, check_name

POINTER_NAME = "current"
_POINTER_LIMIT = 256


@dataclass(frozen=True, slots=True)
class WorldFolder:
    """A folder that is a world, or holds versions of one and the file ``current``.

    ``current`` holds the name of the version folder beside it, such as ``v2``.
    """

    path: Path

    def target(self) -> Path:
        """Return the folder of the world to serve now.

        Raises:
            ForeignWorldError: neither a world nor a pointer is there, or the pointer is no name.
        """
        pointer = self.path / POINTER_NAME
        try:
            if (self.path / MANIFEST_NAME).exists() or not pointer.exists():
                return self.path
            with pointer.open("rb") as file:
                text = file.read(_POINTER_LIMIT).decode("utf-8").strip()
            return self.path / check_name(text)
        except (OSError, UnicodeDecodeError, BadInputError) as error:
            raise ForeignWorldError(
                f"{pointer} names no version folder ({error}).",
                hint="It must hold the name of a folder beside it, such as v2.",
            ) from error
