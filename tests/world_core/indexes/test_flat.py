from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from world_core.errors import DamagedFileError, IndexFailedError, MissingPartError
from world_core.indexes import flat
from world_core.indexes.codes import Coded, quantised
from world_core.indexes.flat import TorchFlat, load_torch, products
from world_core.indexes.row_flags import RowFlags

ROWS, DIM = 1000, 48
HELD = ["byte", "half"]


def some(count: int, seed: int = 1, dim: int = DIM) -> Coded:
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return quantised((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


def written(folder: Path, table: Coded) -> tuple[Path, Path]:
    codes, scales = folder / "codes.npy", folder / "scales.npy"
    np.save(codes, table.codes)
    np.save(scales, table.scales)
    return codes, scales


def brute_force(table: Coded, queries: Coded) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    whole = queries.codes.astype(np.int64) @ table.codes.astype(np.int64).T
    factors = queries.scales.astype(np.float64)[:, np.newaxis] * table.scales
    product: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = whole * factors
    return product


@pytest.fixture(scope="module")
def table() -> Coded:
    return some(ROWS)


@pytest.fixture(scope="module")
def files(table: Coded, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return written(tmp_path_factory.mktemp("codes"), table)


@pytest.fixture(scope="module", params=HELD)
def tier(request: pytest.FixtureRequest, files: tuple[Path, Path]) -> TorchFlat:
    return TorchFlat.open(*files, held=request.param)


@pytest.mark.parametrize("count", [1, 7, 32])
@pytest.mark.parametrize("share", [None, 0.0, 0.01, 0.5])
def test_the_best_rows_are_those_of_brute_force(
    tier: TorchFlat, table: Coded, count: int, share: float | None
) -> None:
    queries = some(count, seed=2)
    flags = None if share is None else np.random.default_rng(3).random(ROWS) < share
    exact = brute_force(table, queries)
    if flags is not None:
        exact[:, ~flags] = -np.inf
    wanted = 40

    found = tier.nearest(queries, wanted, None if flags is None else RowFlags(flags), 1)

    assert len(found) == count
    for place, (scores, rows) in enumerate(found):
        best = np.sort(exact[place])[::-1][:wanted]
        best = best[np.isfinite(best)]
        assert scores.shape == rows.shape == best.shape
        assert np.abs(scores - best).max(initial=0) < 1e-6
        assert_array_equal(np.sort(exact[place][rows])[::-1], best)


@given(st.integers(0, 500), st.integers(1, 9), st.integers(1, 40), st.integers(20, 1200))
@settings(max_examples=40)
def test_chunks_and_batches_leave_no_trace(
    table: Coded, seed: int, count: int, wanted: int, chunk: int
) -> None:
    rows, scales = torch.from_numpy(table.codes), torch.from_numpy(table.scales)
    whole, cut = TorchFlat(torch, rows, scales), TorchFlat(torch, rows, scales)
    cut._chunk = chunk
    queries = some(count, seed)

    together = cut.nearest(queries, wanted, None, 1)

    for place, found in enumerate(together):
        row = Coded(queries.codes[place : place + 1], queries.scales[place : place + 1])
        alone = whole.nearest(row, wanted, None, 1)[0]
        assert_array_equal(found.scores, alone.scores)
        assert set(found.rows.tolist()) == set(alone.rows.tolist())


@pytest.mark.parametrize("dim", [8, 384, 1024, 1040])
@pytest.mark.parametrize("kind", [torch.int8, torch.float16])
def test_products_of_codes_are_whole_numbers_without_rounding(dim: int, kind: torch.dtype) -> None:
    source = np.random.default_rng(dim)
    rows = source.choice([-127, 127, 126], (50, dim)).astype(np.int8)
    rows[0] = 127
    queries = np.concatenate([rows[:1], source.integers(-127, 128, (3, dim)).astype(np.int8)])

    found = products(torch, torch.from_numpy(queries), torch.from_numpy(rows).to(kind)).numpy()

    assert found.dtype == np.float32
    assert_array_equal(found, queries.astype(np.int64) @ rows.astype(np.int64).T)


def test_threads_get_the_answers_of_one(tier: TorchFlat) -> None:
    queries = [some(1, seed) for seed in range(20)]
    flags = RowFlags(np.random.default_rng(5).random(ROWS) < 0.5)
    expected = [tier.nearest(query, 30, flags, 1)[0] for query in queries]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda query: tier.nearest(query, 30, flags, 1)[0], queries))

    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one.rows, other.rows)
        assert_array_equal(one.scores, other.scores)


def test_more_rows_than_there_are_give_all(tier: TorchFlat) -> None:
    assert len(tier.nearest(some(1), 10 * ROWS, None, 1)[0].rows) == ROWS


def test_no_queries_and_no_rows_give_nothing(tier: TorchFlat, tmp_path: Path) -> None:
    none = Coded(np.zeros((0, DIM), np.int8), np.zeros(0, np.float32))
    empty = TorchFlat.open(*written(tmp_path, none))

    assert tier.nearest(none, 5, None, 1) == []
    assert empty.shape == (0, DIM)
    assert len(empty.nearest(some(1), 5, None, 1)[0].rows) == 0


def test_it_tells_its_kind_shape_and_margin(tier: TorchFlat) -> None:
    assert (tier.kind, tier.shape) == ("torch", (ROWS, DIM))
    assert 0 < tier.margin < 1e-4
    assert tier.breadth(10) > 10


def test_on_a_cpu_the_rows_are_the_mapped_file(files: tuple[Path, Path]) -> None:
    tier = TorchFlat.open(*files)

    assert tier._rows.dtype == torch.int8
    before = files[0].read_bytes()
    tier._rows[0] = 1  # copy on write: the world cannot be changed through it
    assert files[0].read_bytes() == before


def test_a_closed_tier_holds_nothing(files: tuple[Path, Path]) -> None:
    tier = TorchFlat.open(*files)

    tier.close()

    assert tier.shape[0] == 0
    assert len(tier.nearest(some(1), 5, None, 1)[0].rows) == 0


def test_a_failure_inside_torch_is_an_index_error(tier: TorchFlat) -> None:
    with pytest.raises(IndexFailedError, match="5 rows"):
        tier.nearest(some(1, dim=DIM + 1), 5, None, 1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_without_a_gpu_the_error_says_so(files: tuple[Path, Path], device: str) -> None:
    with pytest.raises(MissingPartError, match="sees 0 GPUs") as caught:
        TorchFlat.open(*files, device)
    assert "--dense-device cpu" in caught.value.hint


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("held", HELD)
def test_a_gpu_gives_the_rows_of_the_cpu(files: tuple[Path, Path], held: str) -> None:
    cpu, gpu = TorchFlat.open(*files), TorchFlat.open(*files, "cuda", held=held)
    queries = some(32, seed=6)

    pairs = zip(cpu.nearest(queries, 50, None, 1), gpu.nearest(queries, 50, None, 1), strict=True)
    for one, other in pairs:
        assert set(one.rows.tolist()) == set(other.rows.tolist())


def test_rows_that_do_not_fit_are_refused(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat, "_room", lambda torch, device: ROWS * DIM - 1)

    with pytest.raises(IndexFailedError, match=r"1000 rows of 48 components need 0\.0 GB"):
        TorchFlat.open(*files)


def test_rows_that_fit_as_bytes_only_are_held_as_bytes(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat, "_room", lambda torch, device: ROWS * DIM)

    assert TorchFlat.open(*files)._rows.dtype == torch.int8
    with pytest.raises(IndexFailedError):
        TorchFlat.open(*files, held="half")


@pytest.mark.parametrize("name", ["codes.npy", "scales.npy"])
def test_a_missing_file_is_named(table: Coded, tmp_path: Path, name: str) -> None:
    paths = written(tmp_path, table)
    (tmp_path / name).unlink()

    with pytest.raises(DamagedFileError, match=name):
        TorchFlat.open(*paths)


def test_without_torch_the_install_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MissingPartError) as caught:
        load_torch()

    assert "pip install" in caught.value.hint
