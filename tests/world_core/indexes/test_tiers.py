from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from world_core.indexes.codes import Coded, quantised
from world_core.indexes.dense import write_dense
from world_core.indexes.devices import DenseFiles, open_tier
from world_core.indexes.row_flags import RowFlags
from world_core.indexes.tiers import CELLS_LIMIT, FLAT_LIMIT, KINDS, Tier, chosen_kind

ROWS, DIM = 3000, 16


@pytest.fixture(scope="module")
def table() -> Coded:
    rows = np.random.default_rng(1).standard_normal((ROWS, DIM)).astype(np.float32)
    return quantised((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


@pytest.fixture(scope="module", params=KINDS)
def tier(
    request: pytest.FixtureRequest, table: Coded, tmp_path_factory: pytest.TempPathFactory
) -> Tier:
    folder: Path = tmp_path_factory.mktemp("tier")
    write_dense(folder, table.vectors(0, ROWS), np.arange(ROWS, dtype=np.int64), tier=request.param)
    files = DenseFiles(folder / "index.faiss", folder / "codes.npy", folder / "scales.npy")
    return open_tier(files, table, request.param, "cpu")


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (0, "flat"),
        (FLAT_LIMIT, "flat"),
        (FLAT_LIMIT + 1, "ivf"),
        (CELLS_LIMIT, "ivf"),
        (CELLS_LIMIT + 1, "ivfpq"),
    ],
)
def test_the_automatic_tier_goes_by_the_rows(rows: int, kind: str) -> None:
    assert chosen_kind("auto", rows) == kind


@pytest.mark.parametrize("tier", KINDS)
def test_a_tier_is_taken_where_it_can_be_learnt(tier: str) -> None:
    assert chosen_kind(tier, 10**7) == chosen_kind(tier, 256) == tier
    assert chosen_kind(tier, 0) == "flat"
    assert chosen_kind(tier, 1) == chosen_kind(tier, 255) == ("flat" if tier == "ivfpq" else tier)


def test_every_tier_tells_its_kind_and_shape(tier: Tier) -> None:
    assert tier.kind in KINDS
    assert tier.shape == (ROWS, DIM)
    assert tier.margin > 0
    assert tier.breadth(10) > 10


def test_every_tier_proposes_nearest_first_without_padding(tier: Tier, table: Coded) -> None:
    queries = Coded(table.codes[:5], table.scales[:5])

    for place, found in enumerate(tier.nearest(queries, 50, None, 4)):
        assert place in found.rows[: 10 if tier.kind == "ivfpq" else 1]
        assert len(found.rows) == len(set(found.rows.tolist())) == len(found.scores) <= 50
        assert (np.diff(found.scores) <= 0).all()
        assert found.rows.min() >= 0


def test_every_tier_proposes_allowed_rows_only(tier: Tier, table: Coded) -> None:
    flags = np.random.default_rng(2).random(ROWS) < 0.1
    queries = Coded(table.codes[:5], table.scales[:5])

    for found in tier.nearest(queries, 400, RowFlags(flags), ROWS):
        assert set(found.rows.tolist()) <= set(np.flatnonzero(flags).tolist())
        assert len(found.rows) == flags.sum()


def test_every_tier_scores_nearly_as_the_codes_do(tier: Tier, table: Coded) -> None:
    queries = Coded(table.codes[7:8], table.scales[7:8])
    scores, rows = tier.nearest(queries, 100, None, 4)[0]

    exact = table.vectors(0, ROWS)[rows].astype(np.float64) @ queries.vectors(0, 1)[0]

    assert np.abs(scores - exact).max() <= (0.5 if tier.kind == "ivfpq" else 0.02)
    if tier.kind in ("flat", "torch"):
        assert np.abs(scores - exact).max() <= tier.margin
