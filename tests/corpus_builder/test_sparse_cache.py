from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.errors import StageFailedError
from corpus_builder.sparse_cache import SparseCache
from corpus_builder.vector_cache import VectorCache, text_digest
from world_core.encoders.sparse import SparseVector

weights = st.dictionaries(
    st.integers(0, 2**31 - 1), st.floats(2.0**-20, 100.0, width=32), max_size=20
)
ONE = text_digest("one")


@given(st.lists(weights, min_size=1, max_size=5))
def test_weights_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[int, float]]
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    stored = [SparseVector.of(row, "e") for row in rows]
    digests = [text_digest(str(place)) for place in range(len(rows))]
    with SparseCache(folder, "e") as cache:
        cache.store(digests, stored)
    with SparseCache(folder, "e") as cache:
        found = cache.find([*digests, ONE])

    assert found.keys() == set(digests)
    for digest, vector in zip(digests, stored, strict=True):
        assert found[digest].tokens.tolist() == vector.tokens.tolist()
        assert found[digest].weights.tobytes() == vector.weights.tobytes()


def test_a_batch_is_stored_whole_or_not(tmp_path: Path) -> None:
    with SparseCache(tmp_path, "e") as cache:
        with pytest.raises(ValueError, match="shorter"):
            cache.store([ONE, text_digest("two")], [SparseVector.of({1: 1.0}, "e")])
        assert cache.find([ONE]) == {}


@pytest.mark.parametrize(
    "data",
    [
        b"12345",
        np.array([5, 3], "<i4").tobytes() + np.ones(2, "<f4").tobytes(),
        np.array([3, 3], "<i4").tobytes() + np.ones(2, "<f4").tobytes(),
        np.array([-1], "<i4").tobytes() + np.ones(1, "<f4").tobytes(),
        np.array([3], "<i4").tobytes() + np.zeros(1, "<f4").tobytes(),
        np.array([3], "<i4").tobytes() + np.full(1, np.nan, "<f4").tobytes(),
    ],
)
def test_what_cannot_be_weights_is_damage(tmp_path: Path, data: bytes) -> None:
    with SparseCache(tmp_path, "e") as cache:
        cache.write([(ONE, data)])
        with pytest.raises(StageFailedError, match="weights in it cannot be") as caught:
            cache.find([ONE])
    assert str(cache.path) in caught.value.hint


def test_the_sides_of_a_model_do_not_meet(tmp_path: Path) -> None:
    with SparseCache(tmp_path, "sparse") as sparse, VectorCache(tmp_path, "dense", 4) as dense:
        sparse.store([ONE], [SparseVector.of({1: 1.0}, "e")])
        assert dense.find([ONE]) == {}
        assert sparse.path != dense.path


def test_no_database_is_damage(tmp_path: Path) -> None:
    with SparseCache(tmp_path, "e") as cache:
        path = cache.path
    path.write_bytes(b"this is no database, whatever its name says" * 9)
    with pytest.raises(StageFailedError, match="cannot be used"):
        SparseCache(tmp_path, "e")
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE encoder (id TEXT PRIMARY KEY)")
        other.execute("INSERT INTO encoder VALUES ('somebody')")
    other.close()
    with pytest.raises(StageFailedError, match="two encoders"):
        SparseCache(tmp_path, "e")
