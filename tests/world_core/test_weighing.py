"""The weights of a long query's terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core import holder_counts as module
from world_core.analysis import Analyzer
from world_core.holder_counts import HolderCounts
from world_core.indexes.tantivy import TantivyIndex
from world_core.weighing import Weighing, factor


class Counted(TantivyIndex):
    """An index of which only the counts are asked, and how often."""

    def __init__(self, count: int, holders: dict[str, int]) -> None:
        self._count = count
        self._known = holders
        self.asked: list[list[str]] = []

    def holders(self, field: str, terms: Sequence[str]) -> list[int]:
        assert field == "body"
        self.asked.append(list(terms))
        return [self._known.get(term, 0) for term in terms]


HOLDERS = {"the": 900, "of": 700, "keeper": 12, "lighthouse": 3}
WORDS = ["the", "keeper", "of", "the", "old", "lighthouse", "of", "north"]


def test_common_terms_of_a_long_query_count_less() -> None:
    factors = Weighing(HolderCounts(Counted(1000, HOLDERS)), 6)(WORDS)
    assert set(factors) == set(WORDS)
    assert factors["the"] < factors["of"] < factors["keeper"] < factors["lighthouse"]
    assert factors["old"] == factors["north"] == 1.0
    assert factors["the"] == round(math.sqrt(math.log1p(100.5 / 900.5) / math.log1p(1000)), 4)


def test_a_short_query_is_left_alone_and_costs_nothing() -> None:
    index = Counted(1000, HOLDERS)
    assert Weighing(HolderCounts(index), 7)(WORDS) == {}
    assert Weighing(HolderCounts(index), 0)(WORDS) == {}
    assert index.asked == []
    assert Weighing(HolderCounts(index), 6)(WORDS) != {}


def test_repeats_do_not_make_a_query_long() -> None:
    assert Weighing(HolderCounts(Counted(1000, HOLDERS)), 6)(["the", "of"] * 9) == {}


def test_a_term_is_counted_once() -> None:
    index = Counted(1000, HOLDERS)
    weigh = Weighing(HolderCounts(index), 2)
    first = weigh(["the", "of", "the"])
    assert weigh(["of", "the"]) == first
    assert weigh(["of", "keeper"])["of"] == first["of"]
    assert index.asked == [["the", "of"], ["keeper"]]


def test_the_memory_of_counts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", 10)
    weigh = Weighing(HolderCounts(Counted(1000, {})), 1)
    for start in range(0, 90, 3):
        terms = [f"w{number}" for number in range(start, start + 4)]
        assert weigh(terms) == dict.fromkeys(terms, 1.0)
        assert len(weigh._counts._known) <= 10


def test_threads_get_the_same_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", 30)
    holders = {f"w{number}": number * 7 for number in range(100)}
    weigh = Weighing(HolderCounts(Counted(1000, holders)), 1)
    queries = [[f"w{(start * step) % 100}" for step in range(9)] for start in range(300)]
    expected = [Weighing(HolderCounts(Counted(1000, holders)), 1)(terms) for terms in queries]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(weigh, queries)) == expected


@given(st.integers(1, 10**9), st.data())
def test_a_factor_lies_between_0_and_1_and_falls(count: int, data: st.DataObject) -> None:
    some = sorted(data.draw(st.lists(st.integers(0, count), min_size=2, max_size=9)))
    factors = [factor(holders, count) for holders in some]
    assert all(0.0 <= value <= 1.0 and round(value, 4) == value for value in factors)
    assert all(one >= other for one, other in itertools.pairwise(factors))


def test_an_empty_world_weighs_nothing() -> None:
    assert factor(0, 0) == 1.0


def test_stems_count_by_the_term_of_their_word() -> None:
    analyzer = Analyzer(["en"])
    factors = {"ferries": 0.25, "cafe": 0.5}
    query = analyzer.query("Ferries at Café 北京", lambda terms: factors)
    by_name = {part.name: part for part in query.fields}
    assert by_name["body"].terms == ("ferries", "at", "cafe", "北京")
    assert by_name["body"].factors == (0.25, 1.0, 0.5, 1.0)
    assert by_name["stem_en"].terms == ("ferri", "at", "cafe")
    assert by_name["stem_en"].factors == (0.25, 1.0, 0.5)


def test_a_query_that_is_not_weighed_has_no_factors() -> None:
    analyzer = Analyzer(["en"])
    assert analyzer.query("a b c", lambda terms: {}) == analyzer.query("a b c")
