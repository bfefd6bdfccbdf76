from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_core.worlds import make_world
from world_core import extent
from world_core.errors import BadInputError
from world_core.extent import Extent
from world_core.indexes.dense import write_dense
from world_core.indexes.tiers import chosen_kind
from world_core.manifest import read
from world_core.types import as_numbers
from world_core.unit_costs import ENCODERS

RECIPE = '[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\n'
PAGES = st.integers(0, 10**8)
TIERS = ("flat", "ivf", "hnsw", "ivfpq", "torch")


def test_a_world_is_described_by_its_manifest(tmp_path: Path) -> None:
    small_world = make_world(tmp_path, RECIPE)
    manifest = read(small_world)
    found = extent.of_world(manifest)
    assert (found.pages, found.versions) == (80, 100)
    assert found.passages == manifest.counts.passages
    assert manifest.dense is not None
    assert (found.rows, found.dim, found.tier) == (
        manifest.dense.rows,
        manifest.dense.dim,
        manifest.dense.kind,
    )
    assert found.encoder == "tiny"
    assert found.units == 100
    size = sum(path.stat().st_size for path in small_world.rglob("*") if path.is_file())
    assert found.disk == size - (small_world / "manifest.json").stat().st_size
    lexical = sum(path.stat().st_size for path in (small_world / "lexical").iterdir())
    assert found.stored["lexical"] == lexical


@pytest.mark.parametrize("tier", TIERS)
def test_the_bytes_of_a_dense_index_are_those_of_its_files(tmp_path: Path, tier: str) -> None:
    rows, dim = 3000, 64
    vectors = np.random.default_rng(1).normal(size=(rows, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    write_dense(tmp_path, vectors, as_numbers(range(rows)), tier=tier)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert extent.dense_bytes(tier, rows, dim) == pytest.approx(size, rel=0.12)


def test_an_unknown_tier_is_taken_for_flat() -> None:
    assert extent.dense_bytes("new", 10, 8) == extent.dense_bytes("flat", 10, 8)


@given(
    PAGES, st.floats(0, 100), st.sampled_from(sorted(ENCODERS)), st.sampled_from(["all", "lead"])
)
def test_what_a_world_holds_is_whole_and_not_negative(
    pages: int, passages: float, encoder: str, rows: str
) -> None:
    found = extent.of_pages(pages, encoder=encoder, passages_a_page=passages, rows=rows)
    numbers = [found.pages, found.versions, found.passages, found.rows, found.units, found.disk]
    assert all(isinstance(number, int) and number >= 0 for number in numbers)
    assert found.rows <= found.passages
    assert found.tier == chosen_kind("auto", found.rows)
    if rows == "lead":
        assert found.rows <= pages


@given(PAGES, PAGES, st.sampled_from(["", *sorted(ENCODERS)]), st.sampled_from(TIERS))
def test_more_pages_hold_more(few: int, more: int, encoder: str, tier: str) -> None:
    few, more = sorted((few, more))

    def of(pages: int) -> Extent:
        # A dense index of few rows is flat whatever the recipe says.
        return extent.of_pages(pages + 256, encoder=encoder, tier=tier)

    small, large = of(few), of(more)
    assert small.passages <= large.passages
    assert small.rows <= large.rows
    for part in extent.PARTS:
        assert small.stored[part] <= large.stored[part]


def test_rows_follow_the_recipe() -> None:
    def rows(**settings: object) -> int:
        return extent.of_pages(1000, encoder="tiny", passages_a_page=4, **settings).rows  # type: ignore[arg-type]

    assert rows() == 4000
    assert rows(rows="lead") == 1000
    assert rows(rows="none") == 0
    assert rows(rows="lead", row_pages=10) == 10
    assert rows(row_pages=10) == 40
    assert rows(row_pages=10**9) == 4000


def test_without_an_encoder_there_is_no_dense_index() -> None:
    found = extent.of_pages(1000, encoder="", engine="tantivy", unit="passage")
    assert (found.rows, found.dim, found.tier, found.stored["dense"]) == (0, 0, "", 0)
    assert found.units == found.passages


def test_components_are_the_encoders_own_unless_told() -> None:
    assert extent.of_pages(1, encoder="onnx-minilm").dim == 384
    assert extent.of_pages(1, encoder="tiny", dim=32).dim == 32


@pytest.mark.parametrize(
    ("pages", "settings"),
    [(-1, {}), (1, {"passages_a_page": -0.5}), (1, {"dim": -1}), (1, {"row_pages": -1})],
)
def test_negative_numbers_are_refused(pages: int, settings: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match="not negative"):
        extent.of_pages(pages, encoder="tiny", **settings)  # type: ignore[arg-type]


def test_an_encoder_without_costs_is_refused_by_name() -> None:
    with pytest.raises(BadInputError, match="'bert'"):
        extent.of_pages(1, encoder="bert")
