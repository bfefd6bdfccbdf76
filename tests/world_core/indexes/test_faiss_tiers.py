from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest

from world_core.errors import DamagedFileError, IndexFailedError, MissingPartError
from world_core.indexes.codes import Coded, coded, quantised
from world_core.indexes.faiss_tiers import (
    FAISS_KINDS,
    FaissTier,
    cells_of,
    load_faiss,
    pieces_of,
    read_tier,
    write_tier,
)
from world_core.indexes.row_flags import RowFlags
from world_core.indexes.tiers import HALF_MARGIN, Found


def circle(count: int) -> Coded:
    """Unit vectors around half a circle: the nearest of the first are those that follow it."""
    angles = np.linspace(0.0, np.pi, count)
    return quantised(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))


def from_first(tier: FaissTier, wanted: int, flags: RowFlags | None, effort: int) -> Found:
    """Ask for the rows nearest to the first of the circle."""
    return tier.nearest(coded(np.array([1.0, 0.0], np.float32)), wanted, flags, effort)[0]


def nearest_in_child(path: str) -> list[int]:
    rows = from_first(read_tier(Path(path)), 3, None, 1).rows
    return [int(row) for row in rows]


@pytest.mark.parametrize("kind", FAISS_KINDS)
def test_what_was_written_is_read(kind: str, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", kind, circle(300))

    tier = read_tier(tmp_path / "index")

    assert (tier.kind, tier.shape) == (kind, (300, 2))


@pytest.mark.parametrize("kind", FAISS_KINDS)
def test_the_nearest_come_first_with_falling_scores(kind: str, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", kind, circle(300))

    scores, rows = from_first(read_tier(tmp_path / "index"), 20, None, 4)

    # Codes and half precision leave neighbours on the circle in any order.
    assert max(rows.tolist()) < 40
    assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize("kind", FAISS_KINDS)
def test_only_flagged_rows_come_back_without_padding(kind: str, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", kind, circle(300))
    flags = np.zeros(300, dtype=np.bool_)
    flags[[3, 250, 299]] = True

    scores, rows = from_first(read_tier(tmp_path / "index"), 50, RowFlags(flags), 300)

    assert rows.tolist() == [3, 250, 299]
    assert scores.shape == (3,)


def test_few_cells_find_fewer_and_more_effort_finds_more(tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "ivf", circle(20_000))
    tier = read_tier(tmp_path / "index")

    few = from_first(tier, 20_000, None, 1).rows
    all_of_them = from_first(tier, 20_000, None, 20_000).rows

    assert 0 < len(few) < len(all_of_them) == 20_000


def test_a_failure_inside_faiss_is_an_index_error(tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "ivf", circle(300))

    with pytest.raises(IndexFailedError, match="3 rows"):
        from_first(read_tier(tmp_path / "index"), 3, None, 0)


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


def test_a_batch_is_answered_one_by_one(tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "ivf", circle(3000))
    tier = read_tier(tmp_path / "index")
    table = circle(11)

    together = tier.nearest(table, 20, None, 1)

    for place, found in enumerate(together):
        alone = tier.nearest(
            Coded(table.codes[place : place + 1], table.scales[place : place + 1]), 20, None, 1
        )[0]
        assert found.rows.tolist() == alone.rows.tolist()
        assert found.scores.tolist() == alone.scores.tolist()


@pytest.mark.parametrize("dim", [2, 24, 384, 1024])
def test_half_precision_stays_within_its_margin(dim: int, tmp_path: Path) -> None:
    rows = np.random.default_rng(dim).standard_normal((2000, dim)).astype(np.float32)
    rows[:500] *= np.abs(rows[:500]) ** 3  # a few large components and many tiny ones
    table = quantised(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    write_tier(tmp_path / "index", "flat", table)
    tier = read_tier(tmp_path / "index")
    query = Coded(table.codes[:1], table.scales[:1])

    scores, found = tier.nearest(query, 2000, None, 1)[0]

    exact = table.vectors(0, 2000).astype(np.float64) @ query.vectors(0, 1)[0]
    assert np.abs(scores - exact[found]).max() <= HALF_MARGIN == tier.margin


@pytest.mark.parametrize(("dim", "pieces"), [(384, 48), (1024, 128), (24, 3), (20, 2), (7, 1)])
def test_pieces_divide_the_components(dim: int, pieces: int) -> None:
    assert pieces_of(dim) == pieces


@pytest.mark.parametrize(("count", "cells"), [(1, 1), (16, 16), (10_000, 400), (1_000_000, 4000)])
def test_cells_grow_with_the_root_of_the_rows(count: int, cells: int) -> None:
    assert cells_of(count) == cells


def test_product_codes_ask_for_many_more_rows() -> None:
    assert FaissTier("ivfpq", None).breadth(10) > 4 * FaissTier("ivf", None).breadth(10)


def test_a_closed_tier_lets_go_of_its_index(tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "flat", circle(10))
    tier = read_tier(tmp_path / "index")

    tier.close()

    assert tier.index is None
