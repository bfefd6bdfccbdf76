"""What of FAISS on a GPU can be tested without one: refusals, over-fetching, post-filtering."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.errors import IndexFailedError, MissingPartError
from world_core.indexes.codes import Coded, quantised
from world_core.indexes.faiss_gpu import (
    MOST_ROWS,
    FaissGpuTier,
    check_gpu,
    over_fetched,
    visible,
)
from world_core.indexes.faiss_tiers import read_tier, write_tier
from world_core.indexes.row_flags import RowFlags
from world_core.indexes.tiers import Found

ROWS, DIM = 600, 16
HAS_GPU = hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0


@pytest.fixture(scope="module")
def table() -> Coded:
    rows = np.random.default_rng(1).standard_normal((ROWS, DIM)).astype(np.float32)
    return quantised((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


def over_cpu(kind: str, table: Coded) -> FaissGpuTier:
    """Put an index of the CPU in the place of the one on a GPU: both search alike."""
    index: Any
    if kind == "ivf":
        index = faiss.index_factory(DIM, "IVF16,SQ8", faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1
    else:
        metric = faiss.METRIC_L2 if kind == "hnsw" else faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexFlat(DIM, metric)
    index.train(table.vectors(0, ROWS))
    index.add(table.vectors(0, ROWS))
    return FaissGpuTier(kind, index, None, ROWS)


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
def test_without_a_gpu_the_error_names_a_way_on(table: Coded, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", "flat", table)

    with pytest.raises(MissingPartError, match="GPU") as caught:
        FaissGpuTier.of(read_tier(tmp_path / "index"), table)
    assert "--dense-device" in caught.value.hint


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU and FAISS for it")
@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
def test_a_gpu_finds_each_row_by_itself(kind: str, table: Coded, tmp_path: Path) -> None:
    write_tier(tmp_path / "index", kind, table)
    tier = FaissGpuTier.of(read_tier(tmp_path / "index"), table)

    found = tier.nearest(Coded(table.codes[:32], table.scales[:32]), 10, None, 4)

    assert [one.rows[0] for one in found] == list(range(32))


def test_a_faiss_that_sees_no_gpu_is_told_from_one_without_support() -> None:
    blind = SimpleNamespace(
        __version__="1.15.1", StandardGpuResources=object, get_num_gpus=lambda: 0
    )
    bare = SimpleNamespace(__version__="1.15.1")
    seeing = SimpleNamespace(
        __version__="1.15.1", StandardGpuResources=object, get_num_gpus=lambda: 2
    )

    with pytest.raises(MissingPartError, match="FAISS finds 0 GPUs"):
        check_gpu(blind)  # type: ignore[arg-type]
    with pytest.raises(MissingPartError, match=r"FAISS 1\.15\.1 has no GPU support"):
        check_gpu(bare)  # type: ignore[arg-type]
    with pytest.raises(MissingPartError, match="there is no GPU 2"):
        check_gpu(seeing, 2)  # type: ignore[arg-type]
    check_gpu(seeing, 1)  # type: ignore[arg-type]


@given(st.integers(1, 500), st.lists(st.booleans(), min_size=1, max_size=50))
def test_more_is_asked_the_less_a_view_shows(wanted: int, shown: list[bool]) -> None:
    flags = RowFlags(np.array(shown))

    asked = over_fetched(wanted, len(shown), flags)

    assert min(wanted, len(shown)) <= asked <= len(shown)
    assert asked >= min(wanted * len(shown) / max(flags.count, 1), len(shown))


def test_no_more_is_asked_than_a_gpu_can_give() -> None:
    assert over_fetched(5000, 10**6, None) == MOST_ROWS
    assert over_fetched(100, 10**6, RowFlags(np.arange(10**6) < 1000)) == MOST_ROWS
    assert over_fetched(100, 10**6, None) == 100


def test_hidden_rows_are_dropped_and_the_rest_cut() -> None:
    found = Found(np.array([4, 3, 2, 1], np.float32), np.array([5, 0, 3, 1]))
    flags = RowFlags(np.array([True, True, False, True, True, False]))

    assert visible(found, 2, flags).rows.tolist() == [0, 3]
    assert visible(found, 2, flags).scores.tolist() == [3, 2]
    assert visible(found, 3, None).rows.tolist() == [5, 0, 3]


@pytest.mark.parametrize("kind", ["flat", "ivf"])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.05])
def test_a_batch_is_filtered_after_the_search(kind: str, share: float, table: Coded) -> None:
    tier = over_cpu(kind, table)
    flags = RowFlags(np.random.default_rng(2).random(ROWS) < share)
    queries = Coded(table.codes[:7], table.scales[:7])

    for found in tier.nearest(queries, 8, flags, 16):
        assert flags.flags[found.rows].all()
        assert len(found.rows) <= 8
        assert (np.diff(found.scores) <= 0).all()


def test_distances_of_a_graph_become_products(table: Coded) -> None:
    queries = Coded(table.codes[:3], table.scales[:3])

    distances = over_cpu("hnsw", table).nearest(queries, 20, None, 1)
    products = over_cpu("flat", table).nearest(queries, 20, None, 1)

    for one, other in zip(distances, products, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert np.abs(one.scores - other.scores).max() < 1e-5


def test_it_tells_what_it_is(table: Coded) -> None:
    flat, cells = over_cpu("flat", table), over_cpu("ivf", table)

    assert (flat.kind, flat.shape) == ("gpu-flat", (ROWS, DIM))
    assert flat.margin > cells.margin
    assert flat.breadth(10) == cells.breadth(10) > 10


def test_a_failure_inside_faiss_is_an_index_error(table: Coded) -> None:
    with pytest.raises(IndexFailedError, match="on the GPU"):
        over_cpu("ivf", table).nearest(Coded(table.codes[:1], table.scales[:1]), 3, None, 0)


def test_a_closed_tier_holds_no_rows(table: Coded) -> None:
    tier = over_cpu("flat", table)

    tier.close()

    assert tier._index.ntotal == 0
