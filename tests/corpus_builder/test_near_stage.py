from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus_builder import near_stage as module
from corpus_builder import snapshot as snapshots
from corpus_builder.near_stage import FILES, PASSES, Near, near_stage
from corpus_builder.recipe import NearRecipe
from corpus_builder.workspace import Workspace
from tests.corpus_builder.samples import drafts, snapshot_of
from world_core.near import FOLDER, NearFile

TEXT = "The lighthouse keeper counts each ship that passes the old pier on a calm morning in May."
OTHER = "Nobody else was awake in the harbour when the first ferry of the day came in from the sea."


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return a workspace with a snapshot: of six pages two are copies, and one holds another."""
    texts = [TEXT, OTHER, f"{OTHER} {TEXT.upper()}", "A page of its own.", f"*{TEXT}*", ""]
    items = [replace(item, text=text) for item, text in zip(drafts(6), texts, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "BLOCK_PAGES", 2)
        snapshot_of(tmp_path, items)
    return Workspace(tmp_path)


def made(workspace: Workspace, least: float = 0.6, workers: int = 1, digest: str = "d") -> Near:
    told: list[int] = []
    near = near_stage(workspace, digest, NearRecipe(least), workers=workers, tell=told.append)
    assert sum(told) in (0, PASSES * 6)
    return near


def files(workspace: Workspace) -> dict[str, bytes]:
    root = workspace.folder / "near"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.npy")}


def numbers(workspace: Workspace) -> list[int]:
    """Return the version number of each draft; every page has one version."""
    pages = list(snapshots.read_pages(snapshots.blocks_of(workspace.folder / "snapshot")))
    places = {page.url: number for number, page in enumerate(pages)}
    return [places[draft.url] for draft in drafts(6)]


def test_the_files_say_who_holds_whom(workspace: Workspace) -> None:
    near = made(workspace)
    file = NearFile.open(workspace.folder / "near" / FILES)
    text, other, both, own, copy, empty = numbers(workspace)
    assert file.version_count == 6
    for version, expected in (
        (text, {both, copy}),
        (copy, {both, text}),
        (other, {both}),
        (both, set()),
        (own, set()),
        (empty, set()),
    ):
        others, shares = file.holders(version)
        assert others.tolist() == sorted(expected)
        assert shares.tolist() == [1.0] * len(expected)
    groups = near.group_column(6)
    assert groups[text] == groups[copy] == min(text, copy)
    assert np.count_nonzero(groups >= 0) == 2
    assert near.counts == {"pairs": 5, "held": 3, "skipped": 0}


def test_workers_leave_no_trace(workspace: Workspace) -> None:
    one = made(workspace)
    before = files(workspace)
    workspace.forget("near")
    assert made(workspace, workers=3) == one
    assert files(workspace) == before
    assert set(before) == {
        "groups.npy",
        *(f"{FILES}/{FOLDER}/{name}.npy" for name in ("starts", "others", "shares")),
    }


@pytest.mark.parametrize("changed", [{"digest": "e"}, {"least": 0.7}])
def test_a_finished_stage_is_not_run_again(
    workspace: Workspace, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(workspace)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the stage ran again")

    monkeypatch.setattr(module, "write_shingles", never)
    assert made(workspace) == first
    with pytest.raises(AssertionError, match="ran again"):
        made(workspace, **changed)


def test_a_stopped_stage_goes_on_from_its_shingles(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "find_pairs", stopped)
        with pytest.raises(KeyboardInterrupt):
            made(workspace)
    assert len(list((workspace.folder / "shingles").iterdir())) == 6
    told: list[int] = []
    near_stage(workspace, "d", NearRecipe(), workers=1, tell=told.append)
    assert sum(told) == (PASSES - 1) * 6  # nothing was made twice
    assert not (workspace.folder / "shingles").exists()
    resumed = files(workspace)
    workspace.forget("near")
    made(workspace)
    assert files(workspace) == resumed


def test_nothing_is_sought_at_zero(workspace: Workspace) -> None:
    made(workspace)
    near = made(workspace, least=0.0)
    assert near == Near()
    assert near.counts == {}
    assert near.group_column(4).tolist() == [-1] * 4
    assert not (workspace.folder / "near").exists()
    assert NearFile.open(workspace.folder / "near" / FILES).version_count == 0


def test_the_threshold_decides(workspace: Workspace) -> None:
    made(workspace, least=0.3)
    low = NearFile.open(workspace.folder / "near" / FILES)
    both = numbers(workspace)[2]
    others, shares = low.holders(both)
    assert others.size == 3
    assert np.all((shares > 0.3) & (shares < 0.6))
