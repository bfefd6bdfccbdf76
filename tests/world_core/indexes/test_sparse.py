from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_core.indexes.sparse_reference import reference_scores, vector
from world_core.encoders.sparse import SparseVector
from world_core.errors import BadInputError, DamagedFileError, IndexFailedError
from world_core.indexes.sparse import QUERY_TOKENS, SparseIndex
from world_core.indexes.sparse_writer import write_sparse

weights = st.dictionaries(
    st.integers(0, 12), st.sampled_from([0.0, 0.001, 0.1, 0.25, 0.5, 1.0, 3.0]), max_size=6
)
collections = st.lists(weights, max_size=30)


@contextmanager
def indexed(rows: list[SparseVector], *, bits: int = 8, top: int = 0) -> Iterator[SparseIndex]:
    with tempfile.TemporaryDirectory() as name:
        write_sparse(Path(name), rows, bits=bits, top=top)
        index = SparseIndex.open(Path(name), bits=bits)
        yield index
        index.close()


@given(collections, weights, st.integers(2, 8), st.integers(0, 4), st.data())
def test_search_and_score_equal_brute_force(
    rows: list[dict[int, float]], asked: dict[int, float], bits: int, top: int, data: st.DataObject
) -> None:
    passages, query = [vector(row) for row in rows], vector(asked)
    k = data.draw(st.integers(0, 40), label="k")
    allowed = data.draw(
        st.none() | st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)), label="view"
    )
    expected = reference_scores(passages, query, bits=bits, top=top)
    seen = [
        place
        for place in range(len(rows))
        if expected[place] > 0 and (not allowed or allowed[place])
    ]
    seen.sort(key=lambda place: (-expected[place], place))

    with indexed(passages, bits=bits, top=top) as index:
        flags = None if allowed is None else np.array(allowed, dtype=np.bool_)
        found = index.search(query, k, flags)
        order = data.draw(st.permutations(range(len(rows))), label="order")
        completed = index.score(query, np.array(order, dtype=np.int64))

    assert found.units.tolist() == seen[:k]
    assert found.scores.tolist() == [expected[place] for place in seen[:k]]
    assert completed.tolist() == [expected[place] for place in order]


@pytest.fixture(scope="module")
def crowd() -> list[SparseVector]:
    """5,000 passages of 40 tokens, a few of them in nearly all passages."""
    source = np.random.default_rng(5)
    rows = []
    for _ in range(5_000):
        tokens = np.unique((source.pareto(0.7, 40) * 3).astype(np.int64) % 3_000)
        rows.append(vector({int(token): float(source.random() + 0.01) for token in tokens}))
    return rows


def test_a_larger_collection_equals_brute_force(crowd: list[SparseVector]) -> None:
    allowed = np.arange(len(crowd)) % 3 != 0
    with indexed(crowd) as index:
        for query in crowd[:3]:
            expected = np.array(reference_scores(crowd, query, bits=8))
            order = np.lexsort((np.arange(len(crowd)), -expected))
            seen = [place for place in order.tolist() if allowed[place] and expected[place] > 0]
            assert index.search(query, 50, allowed).units.tolist() == seen[:50]
            assert index.search(query, 50).units.tolist() == order[:50].tolist()
            assert index.score(query, np.arange(len(crowd))).tolist() == expected.tolist()


def test_threads_see_the_same_scores(crowd: list[SparseVector]) -> None:
    with indexed(crowd) as index, ThreadPoolExecutor(4) as pool:
        alone = [index.search(query, 20) for query in crowd[:40]]
        together = list(pool.map(lambda query: index.search(query, 20), crowd[:40]))
    for one, two in zip(alone, together, strict=True):
        assert one.units.tolist() == two.units.tolist()
        assert one.scores.tolist() == two.scores.tolist()


def test_ties_go_by_number_and_k_cuts_inside_them() -> None:
    with indexed([vector({1: 1.0})] * 9) as index:
        found = index.search(vector({1: 2.0}), 4)
    assert found.units.tolist() == [0, 1, 2, 3]
    assert len(set(found.scores.tolist())) == 1


def test_a_score_is_the_dot_product_up_to_the_steps() -> None:
    passage, query = vector({1: 0.3, 2: 0.05, 7: 0.21}), vector({2: 0.4, 7: 0.2, 9: 1.0})
    with indexed([passage]) as index:
        score = index.score(query, np.array([0]))[0]
    assert score == pytest.approx(0.05 * 0.4 + 0.21 * 0.2, rel=0.02)


def test_the_heaviest_tokens_of_a_long_query_count() -> None:
    query = vector({token: 1.0 + token for token in range(QUERY_TOKENS + 10)})
    with indexed([vector({0: 1.0}), vector({QUERY_TOKENS + 9: 1.0})]) as index:
        assert index.search(query, 5).units.tolist() == [1]


def test_nothing_meets_in_an_empty_index() -> None:
    with indexed([vector({}), vector({})]) as index:
        assert index.count == 2
        assert index.search(vector({1: 1.0}), 5).units.size == 0
        assert index.score(vector({1: 1.0}), np.array([1, 0])).tolist() == [0.0, 0.0]


def test_what_does_not_fit_is_refused() -> None:
    with indexed([vector({1: 1.0})]) as index:
        with pytest.raises(BadInputError, match="k is -1"):
            index.search(vector({1: 1.0}), -1)
        with pytest.raises(BadInputError, match="2 flags do not fit the 1 passages"):
            index.search(vector({1: 1.0}), 1, np.array([True, False]))
        index.close()
        with pytest.raises(IndexFailedError, match="closed"):
            index.search(vector({1: 1.0}), 1)
        with pytest.raises(IndexFailedError, match="closed"):
            index.score(vector({1: 1.0}), np.array([0]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sparse(tmp_path, [vector({1: 1.0, 4: 0.5}), vector({4: 1.0})])
    return tmp_path


@pytest.mark.parametrize("name", ["tokens", "starts", "passages", "codes", "scales"])
@pytest.mark.parametrize("how", ["gone", "cut", "kind"])
def test_a_damaged_file_is_named(folder: Path, name: str, how: str) -> None:
    path = folder / f"{name}.npy"
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        np.save(path, np.zeros(3, dtype=np.float16), allow_pickle=False)
    with pytest.raises(DamagedFileError, match=path.name):
        SparseIndex.open(folder)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("tokens", np.array([4, 1], dtype=np.int32)),
        ("starts", np.array([0, 3], dtype=np.int64)),
        ("starts", np.array([0, 3, 3], dtype=np.int64)),
        ("starts", np.array([1, 2, 3], dtype=np.int64)),
        ("passages", np.array([0, 0], dtype=np.int32)),
        ("codes", np.array([1, 1, 1, 1], dtype=np.uint8)),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    folder: Path, name: str, table: np.ndarray
) -> None:
    np.save(folder / f"{name}.npy", table, allow_pickle=False)
    with pytest.raises(DamagedFileError, match=name):
        SparseIndex.open(folder)
