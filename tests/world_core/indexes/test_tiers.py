from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest

from world_core.errors import DamagedFileError, IndexFailedError, MissingPartError
from world_core.indexes.tiers import KINDS, load_faiss, read_tier, write_tier
from world_core.types import Vectors


def circle(count: int) -> Vectors:
    """Unit vectors around half a circle: the nearest of the first are those that follow it."""
    angles = np.linspace(0.0, np.pi, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def nearest_in_child(path: str) -> list[int]:
    rows = read_tier(Path(path)).nearest(circle(300)[0], 3, None, 1)[1]
    return [int(row) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_read(kind: str, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", kind, circle(300))

    tier = read_tier(tmp_path / "index")

    assert (tier.kind, tier.shape) == (kind, (300, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_nearest_come_first_with_falling_scores(kind: str, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", kind, circle(300))

    scores, rows = read_tier(tmp_path / "index").nearest(circle(300)[0], 20, None, 4)

    assert set(rows.tolist()) == set(range(20))
    assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_only_flagged_rows_come_back_without_padding(kind: str, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", kind, circle(300))
    flags = np.zeros(300, dtype=np.bool_)
    flags[[3, 250, 299]] = True

    scores, rows = read_tier(tmp_path / "index").nearest(circle(300)[0], 50, flags, 300)

    assert rows.tolist() == [3, 250, 299]
    assert scores.shape == (3,)


def test_few_cells_find_fewer_and_more_effort_finds_more(tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "ivf", circle(20_000))
    tier = read_tier(tmp_path / "index")

    few = tier.nearest(circle(20_000)[0], 20_000, None, 1)[1]
    all_of_them = tier.nearest(circle(20_000)[0], 20_000, None, 20_000)[1]

    assert 0 < len(few) < len(all_of_them) == 20_000


def test_a_failure_inside_faiss_is_an_index_error(tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "ivf", circle(300))

    with pytest.raises(IndexFailedError, match="3 rows"):
        read_tier(tmp_path / "index").nearest(circle(300)[0], 3, None, 0)


def test_a_spawned_process_searches_after_its_parent_did(tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "flat", circle(300))
    expected = nearest_in_child(str(tmp_path / "index"))

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply_async(nearest_in_child, (str(tmp_path / "index"),)).get(60)

    assert found == expected


def test_building_leaves_the_thread_count_as_it_was(tmp_path: Path) -> None:
    before = faiss.omp_get_max_threads()

    write_tier(tmp_path / "index", "ivf", circle(50))

    assert faiss.omp_get_max_threads() == before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="absent"):
        read_tier(tmp_path / "absent")


def test_without_faiss_the_install_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)

    with pytest.raises(MissingPartError) as caught:
        load_faiss()

    assert "pip install" in caught.value.hint
