"""The work folder of a build: lock, completion markers, durable files, leftovers.

``<out>/.build-<name>/`` holds one folder a stage and one marker file a finished stage. A marker is
written after its outputs are on disk, so what has a marker is whole, whenever the build was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from corpus_builder.errors import EmptyWorldError, StageFailedError
from world_core.content import canonical_json

KILL_VARIABLE = "SEARCHWORLD_TEST_KILL_AT"
"""Names a state at which the process kills itself; for tests of resuming, unset otherwise."""

TEMPORARY = ".part"
LOCK = "lock"
Facts = dict[str, object]


def kill_point(state: str) -> None:
    """Die as by ``kill -9`` if the environment names exactly this state; do nothing otherwise."""
    if os.environ.get(KILL_VARIABLE) == state:
        os.kill(os.getpid(), signal.SIGKILL)


def digest_of(*values: object) -> str:
    """Return the sha256 of the values as canonical JSON."""
    return hashlib.sha256(canonical_json(values)).hexdigest()


def sync(path: Path) -> None:
    """Put a file's content, or a folder's list of names, on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Put every file and folder below, and the folder itself, on disk."""
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            sync(Path(root) / name)
        sync(Path(root))


def write_durably(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old content or the new one, never a part of it."""
    part = path.with_name(path.name + TEMPORARY)
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync(path.parent)


class Workspace:
    """The locked work folder of one build.

    Attributes:
        folder: where stages write; private to the build that holds the lock.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    @contextmanager
    def locked(cls, folder: Path) -> Iterator[Workspace]:
        """Create the folder if needed, lock it, and remove what a killed build left half done.

        A folder without a file of a stage at the end is removed, and so is that of a build that has
        nothing to publish: there is nothing in it to go on from.

        Raises:
            StageFailedError: another build holds the lock.
        """
        folder.mkdir(parents=True, exist_ok=True)
        handle = _lock(folder)
        try:
            _remove_leftovers(folder)
            yield cls(folder)
        except EmptyWorldError:
            shutil.rmtree(folder)
            raise
        finally:
            if not any(path.is_file() for path in folder.rglob("*") if path.name != LOCK):
                shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)

    def outcome(self, stage: str, digest: str) -> Facts | None:
        """Return the facts of a finished stage, or None if it must run (again)."""
        marker = self._marker(stage)
        if not marker.exists() or not (self.folder / stage).exists():
            return None
        saved = json.loads(marker.read_text("utf-8"))
        if saved["digest"] != digest:
            return None
        facts: Facts = saved["facts"]
        return facts

    def stage(
        self, stage: str, digest: str, produce: Callable[[Path], Mapping[str, object]]
    ) -> Facts:
        """Run a stage in one go unless it is finished; return its facts.

        ``produce`` writes into the empty folder it is given, which gets its name only when
        everything in it is on disk. ``digest`` stands for everything the output depends on.
        """
        finished = self.outcome(stage, digest)
        if finished is not None:
            return finished
        self.forget(stage)
        part = self.folder / f"{stage}{TEMPORARY}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        facts = dict(produce(part))
        sync_tree(part)
        part.rename(self.folder / stage)
        self.finish(stage, digest, facts)
        return facts

    def finish(self, stage: str, digest: str, facts: Mapping[str, object]) -> None:
        """Mark a stage, whose outputs are on disk, as finished."""
        text = json.dumps({"digest": digest, "facts": dict(facts)}, ensure_ascii=False)
        write_durably(self._marker(stage), text.encode("utf-8"))
        kill_point(stage)

    def forget(self, stage: str) -> None:
        """Remove a stage's marker and outputs."""
        self._marker(stage).unlink(missing_ok=True)
        shutil.rmtree(self.folder / stage, ignore_errors=True)

    def assembled(self, stages: Sequence[str]) -> Path:
        """Link the files of the stages into the new folder ``world``, and return it.

        A stage is named by the folder that stands for the world's. It is cheap to do again.
        """
        folder = self.folder / "world"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for stage in stages:
            root = self.folder / stage
            for path in sorted(root.rglob("*")):
                target = folder / path.relative_to(root)
                if path.is_dir():
                    target.mkdir(exist_ok=True)
                else:
                    os.link(path, target)
        return folder

    def remove(self) -> None:
        """Remove the work folder; the build is published."""
        shutil.rmtree(self.folder)

    def _marker(self, stage: str) -> Path:
        return self.folder / f"{stage}.done.json"


def _lock(folder: Path) -> int:
    path = folder / LOCK
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise StageFailedError(
                f"Another build is at work in {folder}.",
                hint="Wait until it has ended, or give this build another --name or --out.",
            ) from error
        # A build that just ended may have removed the file between opening and locking.
        if path.exists() and path.stat().st_ino == os.fstat(handle).st_ino:
            return handle
        os.close(handle)
        folder.mkdir(parents=True, exist_ok=True)


def _remove_leftovers(folder: Path) -> None:
    for path in sorted(folder.rglob(f"*{TEMPORARY}")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
