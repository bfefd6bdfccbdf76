from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from corpus_builder.indexing import BATCH, Row
from corpus_builder.recipe import SparseRecipe
from corpus_builder.sparse_cache import SparseCache
from corpus_builder.sparse_stage import Weighing, sparse_stage, weighed, write_weights
from world_core.encoders.sparse import SparseVector
from world_core.encoders.tiny import TinyEncoder
from world_core.encoders.tiny_sparse import TinySparse
from world_core.indexes.sparse import SparseIndex


class Counting(TinySparse):
    """The tiny encoder, counting what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        self.texts += texts
        return super().encode_passages(texts)


@pytest.fixture
def encoder() -> Counting:
    return Counting()


@pytest.fixture
def weighing(encoder: Counting, tmp_path: Path) -> Iterator[Weighing]:
    with SparseCache(tmp_path / "cache", encoder.id) as cache:
        yield Weighing(encoder, cache)


def blocks(numbers: Sequence[int]) -> Iterator[list[Row]]:
    """Yield a row for each passage number, five a block; every third text is the same."""
    rows = [Row(n, "the same words" if n % 3 == 0 else f"pier number{n}") for n in numbers]
    for first in range(0, len(rows), 5):
        yield rows[first : first + 5]


def written(folder: Path, weighing: Weighing, numbers: Sequence[int], told: list[int]) -> Path:
    folder.mkdir()
    write_weights(folder, blocks(numbers), 90, weighing, bits=8, top=0, tell=told.append)
    return folder


def test_passages_find_their_own_text(
    tmp_path: Path, encoder: Counting, weighing: Weighing
) -> None:
    told: list[int] = []
    numbers = [number for number in range(80) if number not in (0, 7, 8)]

    index = SparseIndex.open(written(tmp_path / "one", weighing, numbers, told))

    assert index.count == 90
    assert sum(told) == len(numbers)
    for number in (1, 2, 4, 79):
        query = encoder.encode_queries([f"number{number}"])[0]
        assert index.search(query, 5).units.tolist() == [number]
    query = encoder.encode_queries(["pier"])[0]
    assert set(index.search(query, 100).units.tolist()) == {n for n in numbers if n % 3}
    assert index.score(query, np.array([0, 7, 8, 80, 89])).tolist() == [0.0] * 5
    index.close()


def test_a_text_is_weighed_once(tmp_path: Path, encoder: Counting, weighing: Weighing) -> None:
    first = written(tmp_path / "one", weighing, range(80), [])
    weighed = list(encoder.texts)
    second = written(tmp_path / "two", weighing, range(80), [])

    assert sorted(weighed) == sorted(set(weighed))
    assert encoder.texts == weighed
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_what_was_noticed_is_not_weighed_again(encoder: Counting, weighing: Weighing) -> None:
    texts = [f"text {n}" for n in range(BATCH + 3)]
    weighing.notice(texts[:10])
    weighing.notice(texts[5:12])
    found = weighing.weights(texts, lambda count: None)

    assert encoder.texts == texts
    assert len(found) == len(texts)
    assert found[-1].tokens.tolist() == encoder.encode_queries(texts)[-1].tokens.tolist()


def test_no_rows_make_an_index_without_weights(tmp_path: Path, weighing: Weighing) -> None:
    index = SparseIndex.open(written(tmp_path / "none", weighing, [], []))

    assert index.count == 90
    index.close()


def test_what_the_dense_side_encodes_is_weighed_at_once(tmp_path: Path, encoder: Counting) -> None:
    dense = TinyEncoder(32)
    texts = ["old ferry", "new bridge"]
    with weighed(dense, encoder, tmp_path) as accompanied:
        vectors = accompanied.encode_passages(texts)
        accompanied.encode_queries(["never weighed"])
        assert (accompanied.id, accompanied.dim) == (dense.id, 32)
    assert vectors.tobytes() == dense.encode_passages(texts).tobytes()
    assert encoder.texts == texts
    facts = sparse_stage(
        tmp_path,
        [[Row(0, texts[0]), Row(2, texts[1])]],
        3,
        SparseRecipe("tiny", bits=4, top=1),
        encoder,
        cache=tmp_path,
        tell=lambda count: None,
    )
    assert encoder.texts == texts
    assert (facts["bits"], facts["top"], facts["passages"], facts["postings"]) == (4, 1, 2, 2)
    index = SparseIndex.open(tmp_path / "sparse", bits=4)
    assert index.count == 3
    index.close()


def test_without_a_sparse_side_the_encoder_is_itself(tmp_path: Path) -> None:
    dense = TinyEncoder(32)
    with weighed(dense, None, tmp_path) as same:
        assert same is dense
    assert list(tmp_path.iterdir()) == []
