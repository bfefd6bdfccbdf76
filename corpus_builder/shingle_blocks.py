"""The shingles of every version, one block of pages a task, in as many processes as there are.

They lie in files and are mapped, so that they need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpus_builder.snapshot import read_texts
from corpus_builder.workers import Tell, run_tasks, second_chance
from corpus_builder.workspace import TEMPORARY, digest_of, kill_point, sync
from world_core.shingles import RULES, Shingler
from world_core.types import Numbers

FORMAT = 1
"""Raised when the files of equal pages change."""


@dataclass(frozen=True, slots=True)
class ShingleTask:
    """A block of pages, and where its files go: named by what they depend on."""

    number: int
    pages: Path
    folder: Path
    digest: str

    @property
    def shingle_file(self) -> Path:
        """The distinct shingles of each version, ascending, one version after another; uint64."""
        return self.folder / f"{self.number:05d}-{self.digest[:12]}.shingles.npy"

    @property
    def version_file(self) -> Path:
        """Of each version, how many pages of the block come before, and its shingles; (v, 2).

        Written last: where it is, the block is finished.
        """
        return self.folder / f"{self.number:05d}-{self.digest[:12]}.versions.npy"


def write_shingles(
    pages: Sequence[Path], folder: Path, *, input_digest: str, workers: int, tell: Tell
) -> ShingleSets:
    """Write the shingles of all blocks that are not finished yet, and map them.

    Args:
        pages: the blocks of pages, in order.
        folder: where the files go.
        input_digest: stands for the pages.
        workers: number of processes.
        tell: gets the number of versions done.

    Raises:
        StageFailedError: a process died twice at one block.
    """
    folder.mkdir(exist_ok=True)
    digest = digest_of(FORMAT, RULES, input_digest, len(pages))
    tasks = [ShingleTask(number, path, folder, digest) for number, path in enumerate(pages)]
    waiting = [task for task in tasks if not task.version_file.exists()]
    died = second_chance("shingles")
    for _ in run_tasks(write_block, waiting, workers=workers, died=died, tell=tell):
        kill_point("shingles")
    kept = {path for task in tasks for path in (task.shingle_file, task.version_file)}
    for path in sorted(set(folder.iterdir()) - kept):
        path.unlink()
    return ShingleSets.open(tasks)


def write_block(task: ShingleTask, tell: Tell) -> int:
    """Write the shingles of a block's versions; return the number of versions."""
    shingler = Shingler()
    found: list[NDArray[np.uint64]] = []
    versions: list[tuple[int, int]] = []
    for place, texts in enumerate(read_texts(task.pages)):
        for text in texts:
            found.append(shingler.shingles(text))
            versions.append((place, found[-1].size))
        tell(len(texts))
    _save(task.shingle_file, np.concatenate([np.zeros(0, np.uint64), *found]))
    _save(task.version_file, np.array(versions, np.int64).reshape(-1, 2))
    return len(versions)


@dataclass(frozen=True, slots=True, eq=False)
class ShingleSets:
    """The shingles of all V versions, block by block.

    ``pages`` (V,) int64 are page numbers, ``sizes`` (V,) int64 count the shingles of each version.
    ``blocks`` are the mapped files, ``firsts`` the number of the first version of each, and V;
    ``starts`` (V,) int64 where each version begins in its block.
    """

    pages: Numbers
    sizes: Numbers
    starts: Numbers
    firsts: Numbers
    blocks: tuple[NDArray[np.uint64], ...]

    @classmethod
    def open(cls, tasks: Sequence[ShingleTask]) -> ShingleSets:
        """Map the files of finished tasks."""
        pages: list[Numbers] = [np.zeros(0, np.int64)]
        sizes, starts = list(pages), list(pages)
        counts = [0]
        page = 0
        for task in tasks:
            versions = np.load(task.version_file, allow_pickle=False)
            pages.append(versions[:, 0] + page)
            sizes.append(versions[:, 1])
            starts.append(np.cumsum(versions[:, 1]) - versions[:, 1])
            counts.append(len(versions))
            page += int(versions[-1, 0]) + 1 if len(versions) else 0
        return cls(
            np.concatenate(pages),
            np.concatenate(sizes),
            np.concatenate(starts),
            np.cumsum(counts),
            tuple(map(_mapped, tasks)),
        )

    @property
    def count(self) -> int:
        """Number of versions."""
        return int(self.pages.size)

    def of(self, version: int) -> NDArray[np.uint64]:
        """Return the shingles of a version, ascending."""
        block = int(np.searchsorted(self.firsts, version, side="right")) - 1
        start = int(self.starts[version])
        return self.blocks[block][start : start + int(self.sizes[version])]

    def every(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the shingles of all versions in order."""
        for block, (first, end) in enumerate(zip(self.firsts[:-1], self.firsts[1:], strict=True)):
            whole = self.blocks[block]
            for start, size in zip(
                self.starts[first:end].tolist(), self.sizes[first:end].tolist(), strict=True
            ):
                yield whole[start : start + size]


def _mapped(task: ShingleTask) -> NDArray[np.uint64]:
    """Map a file of shingles, as a plain array: those of ``memmap`` take longer to cut."""
    return np.asarray(np.load(task.shingle_file, mmap_mode="r", allow_pickle=False))


def _save(path: Path, array: NDArray[np.uint64] | Numbers) -> None:
    """Write a file that is whole where it has its name."""
    part = path.with_name(path.name + TEMPORARY)
    with part.open("wb") as file:
        np.save(file, array, allow_pickle=False)
    sync(part)
    part.replace(path)
    sync(path.parent)
