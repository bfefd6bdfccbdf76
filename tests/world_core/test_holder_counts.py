"""The remembered counts of a lexical index."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from world_core import holder_counts
from world_core.holder_counts import FIELD, HolderCounts
from world_core.indexes.tantivy import TantivyIndex


class Counted(TantivyIndex):
    """An index of which only the counts are asked, and how often."""

    def __init__(self) -> None:
        self._count = 1000
        self.asked: list[list[str]] = []

    def holders(self, field: str, terms: Sequence[str]) -> list[int]:
        assert field == FIELD
        self.asked.append(list(terms))
        return [len(term) for term in terms]


def test_each_term_is_counted_once_in_the_order_given() -> None:
    counts = HolderCounts(Counted())

    found = counts.of(["ferry", "quay", "ferry", "a"])

    assert list(found.items()) == [("ferry", 5), ("quay", 4), ("a", 1)]
    assert counts.units == 1000


def test_the_index_is_asked_for_what_is_not_remembered() -> None:
    index = Counted()
    counts = HolderCounts(index)

    counts.of(["ferry", "quay"])
    assert counts.of(["quay", "ferry"]) == {"quay": 4, "ferry": 5}
    counts.of(["ferry", "mill"])
    assert counts.of([]) == {}

    assert index.asked == [["ferry", "quay"], ["mill"]]


def test_all_is_forgotten_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder_counts, "MEMORY", 2)
    index = Counted()
    counts = HolderCounts(index)

    counts.of(["a", "b"])
    assert counts.of(["a", "c"]) == {"a": 1, "c": 1}
    assert counts.of(["b"]) == {"b": 1}

    assert index.asked == [["a", "b"], ["c"], ["b"]]
    assert len(counts._known) == 2


def test_threads_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder_counts, "MEMORY", 20)
    counts = HolderCounts(Counted())
    queries = [["w" * (1 + (start * step) % 30) for step in range(6)] for start in range(300)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(counts.of, queries))

    assert found == [{term: len(term) for term in terms} for terms in queries]
