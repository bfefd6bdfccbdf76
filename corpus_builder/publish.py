"""Putting a finished world in its place, so that a reader meets the old one or the new one, whole.

``<out>/<name>/<first 12 of the world id>/`` is a world, ``<out>/<name>/current`` names the folder
that is served. A world folder appears by one rename and never changes; the pointer is replaced by
another. ``<folder>.report.json`` beside a folder is the report of its build.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from corpus_builder.errors import PublishError
from corpus_builder.workspace import TEMPORARY, kill_point, sync, sync_tree, write_durably
from world_core import manifest as manifests
from world_core.errors import BadInputError, ForeignWorldError
from world_core.manifest import MANIFEST_NAME, Manifest, check_name

POINTER = "current"
SHORT_ID = 12
MOST_TWINS = 100


def check_place(home: Path) -> None:
    """Refuse a folder that is there already and is not a home of worlds; remove leftovers.

    Raises:
        PublishError: the folder holds other things, or is none.
    """
    if not home.exists():
        return
    if not home.is_dir():
        raise PublishError(f"{home} is not a folder.", hint="Give another --name or --out.")
    for leftover in home.glob(f"*{TEMPORARY}"):
        leftover.unlink()
    strangers = [path for path in sorted(home.iterdir()) if not _is_ours(path)]
    if strangers:
        raise PublishError(
            f"{home} holds {strangers[0].name!r}, which is not part of a world.",
            hint="Give another --name or --out, or move it away.",
        )


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest of a folder whose other files are complete, and read everything back.

    Every file is on disk before the manifest, which is the last one written.

    Raises:
        BadWorldError: what was read back is not what was written.
    """
    (folder / MANIFEST_NAME).unlink(missing_ok=True)
    kill_point("files_written")
    sync_tree(folder)
    kill_point("files_synced")
    complete = manifest.model_copy(update={"files": manifests.digest_files(folder)})
    manifests.write(folder, complete)
    kill_point("manifest_written")
    manifests.verify(folder, manifests.read(folder))
    kill_point("verified")
    return complete


def place(folder: Path, manifest: Manifest, home: Path) -> Path:
    """Rename a sealed folder to its final name and return that.

    A world that is there already and answers alike is kept instead, and the new folder removed.

    Raises:
        PublishError: the place is taken by something else, or cannot be written.
        BadWorldError: the world that is there already is damaged.
    """
    home.mkdir(parents=True, exist_ok=True)
    target = _free_place(home, manifest)
    if target.exists():
        manifests.verify(target, manifests.read(target))
        shutil.rmtree(folder)
    else:
        try:
            folder.rename(target)
        except OSError as error:
            raise PublishError(
                f"{target} cannot be made: {error.strerror}.",
                hint="Free the place or give another --out, then run the same command again.",
            ) from error
        sync(home)
    kill_point("renamed")
    return target


def point(home: Path, target: Path) -> None:
    """Make a version folder the one that is served."""
    write_durably(home / POINTER, f"{target.name}\n".encode())
    kill_point("pointed")


def resolve(world: Path) -> Path:
    """Return the folder of a world: the one named, or the one its pointer names.

    Raises:
        ForeignWorldError: there is neither a manifest nor a good pointer.
    """
    pointer = world / POINTER
    if (world / MANIFEST_NAME).exists() or not pointer.exists():
        return world
    try:
        return world / check_name(pointer.read_text("utf-8").strip())
    except (OSError, UnicodeDecodeError, BadInputError) as error:
        raise ForeignWorldError(
            f"{pointer} names no version folder ({error}).",
            hint="It must hold the name of a folder beside it.",
        ) from error


def report_path(target: Path) -> Path:
    """Return where the report of a version folder's build lies."""
    return target.with_name(f"{target.name}.report.json")


def _free_place(home: Path, manifest: Manifest) -> Path:
    """Return the folder for this world: a free one, or that of a world that answers alike.

    The world id leaves the lexical engine and the bits of the vectors open, so there may be
    several worlds of one id.
    """
    short = manifest.world_id[:SHORT_ID]
    for number in range(1, MOST_TWINS):
        target = home / (short if number == 1 else f"{short}-{number}")
        if not target.exists() or _alike(manifests.read(target), manifest):
            return target
    raise PublishError(
        f"{home} holds {MOST_TWINS - 1} worlds with the id {short}.", hint="Give another --name."
    )


def _alike(one: Manifest, other: Manifest) -> bool:
    """True when two manifests differ at most in the bytes of their index files."""
    loose = {"files", "counts"}
    return one.model_dump(exclude=loose) == other.model_dump(exclude=loose)


def _is_ours(path: Path) -> bool:
    if path.name == POINTER or path.name.endswith(".report.json"):
        return path.is_file()
    return path.is_dir() and os.path.lexists(path / MANIFEST_NAME)
