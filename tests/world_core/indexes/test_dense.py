from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from world_core.errors import BadInputError, DamagedFileError, IndexFailedError
from world_core.indexes import dense
from world_core.indexes.dense import (
    CODES_FILE,
    INDEX_FILE,
    ROWS_FILE,
    SCALES_FILE,
    DenseIndex,
    DenseSummary,
    write_dense,
)
from world_core.indexes.faiss_tiers import OVERFETCH
from world_core.indexes.tiers import FLAT_LIMIT, KINDS
from world_core.types import Bitmap, Candidates, Numbers, Vector, Vectors

DIM = 24
ROWS = 6000  # above LIMIT, so that the tier is asked
LIMIT = 2000
TIERS = list(KINDS)
EXACT = ["flat", "torch"]
FILES = [INDEX_FILE, CODES_FILE, SCALES_FILE, ROWS_FILE]


@pytest.fixture(autouse=True)
def exact_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the tier from fewer rows on, so that small indexes will do."""
    monkeypatch.setattr(dense, "EXACT_LIMIT", LIMIT)


def unit_rows(seed: int, count: int, dim: int = DIM) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    vectors: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def every_third(count: int) -> Numbers:
    return np.arange(count, dtype=np.int64) * 3 + 1


def truth(index: DenseIndex, vector: Vector, k: int, units: Numbers) -> Candidates:
    scores = index.score(vector, units)
    order = sorted(range(len(units)), key=lambda i: (-scores[i], units[i]))[:k]
    return Candidates(units[order], scores[order])


def assert_same(found: Candidates, expected: Candidates) -> None:
    assert_array_equal(found.units, expected.units)
    assert_array_equal(found.scores, expected.scores)
    assert found.units.dtype == np.int64
    assert found.scores.dtype == np.float64


def digests(folder: Path) -> list[str]:
    files = sorted(folder.iterdir())
    return [f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]


def opened(folders: dict[str, Path], tier: str) -> DenseIndex:
    return DenseIndex.open(folders[tier], kind=tier)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for tier in TIERS:
        made[tier] = tmp_path_factory.mktemp(tier)
        write_dense(made[tier], unit_rows(1, ROWS), every_third(ROWS), tier=tier)
    return made


@pytest.fixture(scope="module", params=TIERS)
def index(request: pytest.FixtureRequest, folders: dict[str, Path]) -> DenseIndex:
    return opened(folders, request.param)


@pytest.fixture(scope="module", params=EXACT)
def exact(request: pytest.FixtureRequest, folders: dict[str, Path]) -> DenseIndex:
    return opened(folders, request.param)


@pytest.fixture(scope="module")
def flat(folders: dict[str, Path]) -> DenseIndex:
    return DenseIndex.open(folders["flat"])


@pytest.fixture
def copy(folders: dict[str, Path], tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).write_bytes((folders["flat"] / name).read_bytes())
    return tmp_path


# Writing


def test_the_summary_says_what_was_written(tmp_path: Path) -> None:
    summary = write_dense(tmp_path, unit_rows(2, 10), every_third(10))

    codes = np.load(tmp_path / CODES_FILE)
    scales = np.load(tmp_path / SCALES_FILE)
    expected = hashlib.sha256(codes.tobytes() + scales.tobytes()).hexdigest()
    assert summary == DenseSummary("flat", DIM, 10, expected)
    assert (codes.dtype, codes.shape) == (np.int8, (10, DIM))
    assert (scales.dtype, scales.shape) == (np.float32, (10,))
    assert_array_equal(np.load(tmp_path / ROWS_FILE), every_third(10))


@pytest.mark.parametrize("tier", TIERS)
def test_equal_vectors_give_equal_files(tier: str, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        write_dense(folder, unit_rows(3, 400), every_third(400), tier=tier)

    assert digests(first) == digests(second)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "kind"), [(FLAT_LIMIT, "flat"), (FLAT_LIMIT + 1, "ivf")])
def test_the_automatic_tier_changes_at_its_limit(count: int, kind: str, tmp_path: Path) -> None:
    vectors = np.zeros((count, 2), dtype=np.float32)
    angles = np.linspace(0.0, 6.0, count)
    vectors[:, 0], vectors[:, 1] = np.cos(angles), np.sin(angles)

    summary = write_dense(tmp_path, vectors, np.arange(count, dtype=np.int64))

    assert summary.kind == kind


@pytest.mark.parametrize("tier", TIERS)
def test_an_index_of_one_row_works_on_every_tier(tier: str, tmp_path: Path) -> None:
    vectors = unit_rows(4, 1)
    summary = write_dense(tmp_path, vectors, np.array([7]), tier=tier)

    found = DenseIndex.open(tmp_path, kind=summary.kind).search(vectors[0], 10)

    assert found.units.tolist() == [7]


@pytest.mark.parametrize("tier", ["auto", *TIERS])
def test_an_index_without_rows_finds_nothing(tier: str, tmp_path: Path) -> None:
    none = np.zeros((0, DIM), dtype=np.float32)
    summary = write_dense(tmp_path, none, np.zeros(0, dtype=np.int64), tier=tier)
    index = DenseIndex.open(tmp_path)
    vector = unit_rows(5, 1)[0]

    found = index.search(vector, 10)

    assert (summary.kind, summary.rows, index.dim) == ("flat", 0, DIM)
    assert found.units.shape == found.scores.shape == (0,)
    assert len(index.search(vector, 10, np.ones(4, dtype=np.bool_)).units) == 0
    assert index.score(vector, np.array([0, 5])).tolist() == [-1.0, -1.0]


def test_an_unknown_tier_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="'pq'"):
        write_dense(tmp_path, unit_rows(6, 2), every_third(2), tier="pq")


@pytest.mark.parametrize("rows", [[1], [1, 2, 3], [2, 1], [1, 1], [-1, 4]])
def test_rows_that_do_not_fit_are_refused(rows: list[int], tmp_path: Path) -> None:
    with pytest.raises(BadInputError):
        write_dense(tmp_path, unit_rows(7, 2), np.array(rows, dtype=np.int64))
    assert list(tmp_path.iterdir()) == []


def test_vectors_not_of_length_one_are_refused(tmp_path: Path) -> None:
    stretched = unit_rows(8, 4)
    stretched[2] *= 2

    with pytest.raises(BadInputError, match="Vector 2 has the length"):
        write_dense(tmp_path, stretched, every_third(4))


# Searching


def test_the_index_tells_its_shape(index: DenseIndex) -> None:
    assert index.dim == DIM
    assert_array_equal(index.rows, every_third(ROWS))


def test_a_row_is_found_by_its_own_vector(index: DenseIndex) -> None:
    vectors = unit_rows(1, ROWS)

    for row in (0, 77, ROWS - 1):
        found = index.search(vectors[row], 5)
        assert found.units[0] == row * 3 + 1
        assert found.scores[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("k", [1, 10, 100])
def test_tiers_that_scan_all_rows_find_exactly_the_best(exact: DenseIndex, k: int) -> None:
    for vector in unit_rows(9, 20):
        assert_same(exact.search(vector, k), truth(exact, vector, k, exact.rows))


@pytest.mark.parametrize("tier", EXACT)
@pytest.mark.parametrize("spread", [1e-2, 1e-3, 2e-4, 0.0])
def test_the_best_of_a_dense_crowd_are_found_exactly(
    tier: str, spread: float, tmp_path: Path
) -> None:
    crowd = unit_rows(50, 1) + np.float32(spread) * unit_rows(51, 4000)
    crowd = (crowd / np.linalg.norm(crowd, axis=1, keepdims=True)).astype(np.float32)
    write_dense(tmp_path, crowd, every_third(4000), tier=tier)
    index = DenseIndex.open(tmp_path, kind=tier)

    for vector in (*crowd[:5], *unit_rows(52, 5)):
        assert_same(index.search(vector, 25), truth(index, vector, 25, index.rows))


@pytest.mark.parametrize(("tier", "least"), [("ivf", 0.9), ("hnsw", 0.95), ("ivfpq", 0.9)])
def test_the_other_tiers_find_nearly_the_best(
    folders: dict[str, Path], tier: str, least: float
) -> None:
    index = opened(folders, tier)
    queries = unit_rows(10, 30)

    shares = [
        len(set(index.search(q, 10).units) & set(truth(index, q, 10, index.rows).units)) / 10
        for q in queries
    ]

    assert np.mean(shares) >= least


@pytest.mark.parametrize("k", [0, 1, ROWS - 1, ROWS, ROWS + 1, 10 * ROWS])
def test_there_are_never_more_hits_than_rows_and_no_padding(index: DenseIndex, k: int) -> None:
    found = index.search(unit_rows(11, 1)[0], k)

    assert len(found.units) == len(found.scores) == min(k, ROWS)
    assert np.isin(found.units, index.rows).all()
    assert len(set(found.units.tolist())) == len(found.units)


def test_asking_for_all_sorts_all(index: DenseIndex) -> None:
    vector = unit_rows(12, 1)[0]

    assert_same(index.search(vector, ROWS), truth(index, vector, ROWS, index.rows))


def test_the_scores_of_a_search_are_those_of_score(index: DenseIndex) -> None:
    for vector in unit_rows(13, 10):
        found = index.search(vector, 50)
        assert_array_equal(found.scores, index.score(vector, found.units))


def test_a_shorter_list_is_the_head_of_a_longer_one(exact: DenseIndex) -> None:
    vector = unit_rows(14, 1)[0]
    long = exact.search(vector, 200)

    for k in (1, 7, 100):
        short = exact.search(vector, k)
        assert_same(short, Candidates(long.units[:k], long.scores[:k]))


# Restricting


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.999, 1.0])
def test_only_allowed_passages_come_back_and_as_many_as_there_are(
    index: DenseIndex, share: float
) -> None:
    allowed = np.random.default_rng(15).random(ROWS * 3) < share
    permitted = index.rows[allowed[index.rows]]

    found = index.search(unit_rows(16, 1)[0], 100, allowed)

    assert len(found.units) == min(100, len(permitted))
    assert np.isin(found.units, permitted).all()


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9])
def test_a_restricted_search_of_all_rows_is_exact(exact: DenseIndex, share: float) -> None:
    allowed = np.random.default_rng(17).random(ROWS * 3) < share
    permitted = exact.rows[allowed[exact.rows]]

    for vector in unit_rows(18, 10):
        assert_same(exact.search(vector, 20, allowed), truth(exact, vector, 20, permitted))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9, 1.0])
@pytest.mark.parametrize("count", [1, 2, 32])
def test_a_batch_gives_each_query_the_answer_it_gets_alone(
    index: DenseIndex, share: float, count: int
) -> None:
    allowed = np.random.default_rng(53).random(ROWS * 3) < share
    queries = np.concatenate([unit_rows(54, count), unit_rows(1, count)])

    together = index.search_batch(queries, 30, allowed)

    assert len(together) == 2 * count
    for query, found in zip(queries, together, strict=True):
        assert_same(found, index.search(query, 30, allowed))


def test_an_empty_batch_has_no_answers(index: DenseIndex) -> None:
    assert index.search_batch(np.zeros((0, DIM), dtype=np.float32), 3) == []


def test_a_frozen_bitmap_gives_the_same_answers_each_time(index: DenseIndex) -> None:
    allowed = np.random.default_rng(55).random(ROWS * 3) < 0.5
    vector = unit_rows(56, 1)[0]
    expected = index.search(vector, 40, allowed)
    allowed.flags.writeable = False

    assert_same(index.search(vector, 40, allowed), expected)
    assert_same(index.search(vector, 40, allowed), expected)


def test_allowing_everything_changes_nothing(index: DenseIndex) -> None:
    vector = unit_rows(19, 1)[0]

    everything = np.ones(ROWS * 3, dtype=np.bool_)

    assert_same(index.search(vector, 30, everything), index.search(vector, 30))


def test_far_passages_are_found_when_only_they_are_allowed(index: DenseIndex) -> None:
    vector = unit_rows(20, 1)[0]
    worst = truth(index, -vector, LIMIT + 500, index.rows).units
    allowed = np.zeros(ROWS * 3, dtype=np.bool_)
    allowed[worst] = True

    found = index.search(vector, 50, allowed)

    assert len(found.units) == 50
    assert np.isin(found.units, worst).all()


@pytest.mark.parametrize("tier", TIERS)
def test_allowed_passages_in_cells_far_from_the_query_are_found(tier: str, tmp_path: Path) -> None:
    pole = unit_rows(38, 1)[0]
    vectors = np.where(np.arange(6000) < 3500, 1, -1)[:, np.newaxis] * pole
    vectors = vectors + np.float32(0.3) * unit_rows(39, 6000)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    write_dense(tmp_path, vectors, every_third(6000), tier=tier)
    allowed = np.arange(18_000) >= 3500 * 3

    found = DenseIndex.open(tmp_path, kind=tier).search(pole, 40, allowed)

    assert len(found.units) == 40
    assert found.units.min() >= 3500 * 3


def test_flags_that_do_not_cover_the_rows_are_refused(index: DenseIndex) -> None:
    with pytest.raises(BadInputError, match="do not cover passage"):
        index.search(unit_rows(21, 1)[0], 5, np.ones(int(index.rows[-1]), dtype=np.bool_))


# Ties


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("equal", [10, OVERFETCH + 20, 2500])
def test_equal_passages_come_in_order_of_their_numbers(
    tier: str, equal: int, tmp_path: Path
) -> None:
    vectors = unit_rows(22, 3000)
    twins = np.sort(np.random.default_rng(23).permutation(3000)[:equal])
    vectors[twins] = vectors[twins[0]]
    write_dense(tmp_path, vectors, every_third(3000), tier=tier)
    index = DenseIndex.open(tmp_path, kind=tier)

    found = index.search(vectors[twins[0]], 10)

    assert_array_equal(found.units, twins[:10] * 3 + 1)
    assert len(set(found.scores.tolist())) == 1


def test_ties_below_better_passages_come_in_order_too(tmp_path: Path) -> None:
    vectors = unit_rows(24, 3000)
    query = vectors[1500]
    away = unit_rows(25, 1)[0]
    near = query + np.float32(0.2) * away
    twins = np.arange(100, 1100, 7)
    vectors[twins] = near / np.linalg.norm(near)
    write_dense(tmp_path, vectors, every_third(3000))
    index = DenseIndex.open(tmp_path)

    found = index.search(query, 12)

    assert found.units[0] == 1500 * 3 + 1
    assert_array_equal(found.units[1:], twins[:11] * 3 + 1)


# Same bits


@given(
    st.integers(0, 1000),
    st.lists(st.integers(0, ROWS * 3 + 50), max_size=40),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_score_has_the_same_bits_alone_in_company_and_in_any_order(
    flat: DenseIndex, seed: int, passages: list[int]
) -> None:
    vector = unit_rows(seed, 1)[0]
    numbers = np.array(passages, dtype=np.int64)
    order = np.random.default_rng(seed).permutation(len(numbers))

    together = flat.score(vector, numbers)
    alone = [flat.score(vector, numbers[i : i + 1])[0] for i in range(len(numbers))]

    assert together.tolist() == alone
    assert_array_equal(together[order], flat.score(vector, numbers[order]))


def test_a_passage_without_a_row_has_the_floor(index: DenseIndex) -> None:
    vector = unit_rows(26, 1)[0]
    scores = index.score(vector, np.array([0, 1, 2, 4, ROWS * 3, 10**12]))

    assert scores[[0, 2, 4, 5]].tolist() == [-1.0] * 4
    assert (scores[[1, 3]] > -1.0).all()


def test_no_passages_have_no_scores(flat: DenseIndex) -> None:
    assert flat.score(unit_rows(27, 1)[0], np.zeros(0, dtype=np.int64)).shape == (0,)


def test_all_tiers_give_a_passage_the_same_score(folders: dict[str, Path]) -> None:
    vector = unit_rows(28, 1)[0]

    rows = [opened(folders, tier).score(vector, every_third(ROWS)) for tier in folders]

    for other in rows[1:]:
        assert_array_equal(rows[0], other)


def test_tiers_that_scan_all_rows_give_the_same_answers(folders: dict[str, Path]) -> None:
    flat, torch = (opened(folders, tier) for tier in EXACT)
    allowed = np.random.default_rng(57).random(ROWS * 3) < 0.6

    for vector in unit_rows(58, 10):
        assert_same(flat.search(vector, 30), torch.search(vector, 30))
        assert_same(flat.search(vector, 30, allowed), torch.search(vector, 30, allowed))


@pytest.mark.parametrize("tier", TIERS)
def test_an_index_tells_its_tier_and_torch_needs_no_file(
    folders: dict[str, Path], tier: str
) -> None:
    assert opened(folders, tier).tier == tier
    assert (folders[tier] / INDEX_FILE).exists() == (tier != "torch")


def test_many_threads_get_the_answers_of_one(index: DenseIndex) -> None:
    queries = unit_rows(29, 40)
    allowed = np.random.default_rng(30).random(ROWS * 3) < 0.7
    calls = [(q, flags) for q in queries for flags in (None, allowed)] * 4

    def ask(call: tuple[Vector, Bitmap | None]) -> tuple[list[int], list[float]]:
        found = index.search(call[0], 25, call[1])
        return found.units.tolist(), found.scores.tolist()

    expected = [ask(call) for call in calls]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, calls)) == expected


def test_a_second_opening_gives_the_same_answers(folders: dict[str, Path]) -> None:
    for tier in TIERS:
        first, second = opened(folders, tier), opened(folders, tier)
        for vector in unit_rows(31, 10):
            assert_same(first.search(vector, 20), second.search(vector, 20))


# Bad calls


@pytest.mark.parametrize("shape", [(DIM - 1,), (DIM + 1,), (1, DIM), ()])
def test_a_vector_of_another_shape_is_refused(flat: DenseIndex, shape: tuple[int, ...]) -> None:
    vector = np.full(shape, 0.2, dtype=np.float32)

    with pytest.raises(BadInputError, match="does not fit"):
        flat.search(vector, 3)
    with pytest.raises(BadInputError, match="does not fit"):
        flat.score(vector, np.array([1]))


def test_a_vector_that_is_not_a_number_is_refused(index: DenseIndex) -> None:
    vector = np.full(DIM, np.nan, dtype=np.float32)

    with pytest.raises(BadInputError, match="length nan"):
        index.search(vector, 3)


def test_a_negative_k_is_refused(flat: DenseIndex) -> None:
    with pytest.raises(BadInputError, match="-1"):
        flat.search(unit_rows(32, 1)[0], -1)


def test_a_closed_index_says_so(folders: dict[str, Path]) -> None:
    index = DenseIndex.open(folders["flat"])
    index.close()

    with pytest.raises(IndexFailedError, match="closed"):
        index.search(unit_rows(33, 1)[0], 3)
    with pytest.raises(IndexFailedError, match="closed"):
        index.score(unit_rows(33, 1)[0], np.array([1]))
    index.close()


# Damaged files


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()

    with pytest.raises(DamagedFileError, match=name):
        DenseIndex.open(copy)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [0, 1, 60, -100])
def test_a_cut_file_is_named(copy: Path, name: str, keep: int) -> None:
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:keep])

    with pytest.raises(DamagedFileError, match=name):
        DenseIndex.open(copy)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_something_else_is_named(copy: Path, name: str) -> None:
    (copy / name).write_bytes(b"PK\x03\x04 something else altogether " * 50)

    with pytest.raises(DamagedFileError, match=name):
        DenseIndex.open(copy)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_an_index_with_fewer_rows_is_refused(
    copy: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    write_dense(other, unit_rows(34, ROWS - 1), every_third(ROWS - 1))
    (copy / name).write_bytes((other / name).read_bytes())

    with pytest.raises(DamagedFileError, match="rows"):
        DenseIndex.open(copy)


@pytest.mark.parametrize("name", [INDEX_FILE, CODES_FILE])
def test_a_file_of_an_index_with_other_components_is_refused(
    copy: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    write_dense(other, unit_rows(35, ROWS, DIM + 1), every_third(ROWS))
    (copy / name).write_bytes((other / name).read_bytes())

    with pytest.raises(DamagedFileError, match=INDEX_FILE):
        DenseIndex.open(copy)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        (ROWS_FILE, np.arange(ROWS, dtype=np.int32)),
        (ROWS_FILE, np.arange(ROWS, dtype=np.int64)[::-1]),
        (ROWS_FILE, np.arange(ROWS, dtype=np.int64) - 1),
        (CODES_FILE, np.zeros((ROWS, DIM), dtype=np.uint8)),
        (CODES_FILE, np.zeros(ROWS * DIM, dtype=np.int8)),
        (SCALES_FILE, np.zeros(ROWS, dtype=np.float64)),
        (SCALES_FILE, np.array([{}] * ROWS, dtype=object)),
    ],
)
def test_a_table_of_another_kind_is_refused(
    copy: Path, name: str, table: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> None:
    np.save(copy / name, table, allow_pickle=True)

    with pytest.raises(DamagedFileError, match=name):
        DenseIndex.open(copy)


def test_a_faiss_index_of_another_kind_is_refused(copy: Path) -> None:
    other = faiss.IndexFlatIP(DIM)
    other.add(unit_rows(36, ROWS))
    faiss.write_index(other, str(copy / INDEX_FILE))

    with pytest.raises(DamagedFileError, match="IndexFlatIP"):
        DenseIndex.open(copy)


def test_a_faiss_index_of_distances_is_refused(copy: Path) -> None:
    other = faiss.IndexScalarQuantizer(DIM, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_L2)
    other.add(unit_rows(37, ROWS))
    faiss.write_index(other, str(copy / INDEX_FILE))

    with pytest.raises(DamagedFileError, match=INDEX_FILE):
        DenseIndex.open(copy)


def test_an_error_names_the_next_step(copy: Path) -> None:
    (copy / CODES_FILE).unlink()

    with pytest.raises(DamagedFileError) as caught:
        DenseIndex.open(copy)

    assert "build the world again" in caught.value.hint
