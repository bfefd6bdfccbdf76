"""The near-duplicates of a world: its shingles, the pairs among them, and their files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpus_builder.near_pairs import Pairs, find_pairs
from corpus_builder.recipe import NearRecipe
from corpus_builder.shingle_blocks import write_shingles
from corpus_builder.snapshot import blocks_of
from corpus_builder.workers import Tell
from corpus_builder.workspace import Facts, Workspace, digest_of
from world_core.near import write_near
from world_core.shingles import RULES

FORMAT = 1
"""Raised when the output of equal shingles changes."""

PASSES = 3
"""How often every version is told: its shingles made, counted, and looked up."""

FILES = "files"
"""Folder of the stage with the files of the world."""

STAGE = "near"
_GROUPS = "groups.npy"
_SHINGLES = "shingles"


@dataclass(frozen=True, slots=True)
class Near:
    """What was found.

    ``counts`` has the number of ``pairs``, of versions ``held`` by others, and of shingles
    ``skipped`` because they were too frequent to propose candidates; it is empty where nothing was
    sought. ``digest`` stands for the duplicate groups, which lie in the file ``groups``.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""
    groups: Path | None = None

    def group_column(self, versions: int) -> NDArray[np.int32]:
        """Return the duplicate group of every version, -1 for none; shape (versions,)."""
        if self.groups is None:
            return np.full(versions, -1, np.int32)
        groups: NDArray[np.int32] = np.load(self.groups, allow_pickle=False)
        return groups


def near_stage(
    workspace: Workspace, input_digest: str, recipe: NearRecipe, *, workers: int, tell: Tell
) -> Near:
    """Find the near-duplicates of a snapshot, unless an earlier run has.

    Args:
        workspace: holds the finished stage ``snapshot``.
        input_digest: stands for the snapshot.
        recipe: the share of a version's shingles that its holder has at least; 0 seeks nothing.
        workers: number of processes that make shingles.
        tell: gets the number of versions done; each is done ``PASSES`` times.

    Raises:
        StageFailedError: a process died twice at one block.
        OSError: a file cannot be read or written.
    """
    shingles = workspace.folder / _SHINGLES
    if not recipe.least:
        workspace.forget(STAGE)
        shutil.rmtree(shingles, ignore_errors=True)
        return Near()

    def produce(folder: Path) -> Facts:
        pages = blocks_of(workspace.folder / "snapshot")
        sets = write_shingles(
            pages, shingles, input_digest=input_digest, workers=workers, tell=tell
        )
        pairs = find_pairs(sets, recipe.least, tell)
        (folder / FILES).mkdir()
        write_pairs(folder / FILES, pairs)
        np.save(folder / _GROUPS, pairs.groups(), allow_pickle=False)
        held = int(np.unique(pairs.held).size)
        return {"pairs": int(pairs.held.size), "held": held, "skipped": pairs.skipped}

    digest = digest_of(FORMAT, RULES, input_digest, recipe.least)
    facts = workspace.stage(STAGE, digest, produce)
    shutil.rmtree(shingles, ignore_errors=True)
    counts = {name: int(str(value)) for name, value in facts.items()}
    return Near(counts, digest, workspace.folder / STAGE / _GROUPS)


def write_pairs(folder: Path, pairs: Pairs) -> None:
    """Write ``near/`` below the world's folder.

    Raises:
        OSError: the folder cannot be written.
    """
    counts = np.bincount(pairs.held, minlength=pairs.sizes.size)
    starts = np.concatenate(([0], np.cumsum(counts)))
    shares = pairs.shares()
    write_near(folder, {"starts": starts, "others": pairs.holder, "shares": shares})
