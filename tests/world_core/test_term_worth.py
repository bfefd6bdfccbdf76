"""What the terms of a query are worth."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core import holder_counts
from world_core.analysis import QUERY_LIMIT, Analyzer
from world_core.holder_counts import FIELD, MEMORY, HolderCounts
from world_core.indexes.tantivy import TantivyIndex, TantivyWriter
from world_core.passages import term_root
from world_core.term_worth import TermWorth, worth

ANALYZER = Analyzer(["en"])
TEXTS = ["the ferry leaves", "the harbour", "the quay", "the lighthouse", "the lighthouses"]


class Counting:
    """An index that counts how often it is asked."""

    def __init__(self, index: TantivyIndex) -> None:
        self.index = index
        self.count = index.count
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.index, name)

    def holders(self, field: str, terms: Sequence[str]) -> list[int]:
        assert field == FIELD
        self.asked += terms
        return self.index.holders(field, terms)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> TantivyIndex:
    folder = tmp_path_factory.mktemp("worth") / "lexical"
    with TantivyWriter(folder, ANALYZER.fields) as writer:
        for text in TEXTS:
            writer.add(ANALYZER.document("", text, "en"))
    return TantivyIndex.open(folder)


def test_rare_terms_are_worth_more(index: TantivyIndex) -> None:
    weights = TermWorth(ANALYZER, HolderCounts(index))("The ferry, THE zebra?")
    assert weights == {
        term_root("the"): worth(5, 5),
        term_root("ferry"): worth(1, 5),
        term_root("zebra"): worth(0, 5),
    }
    assert 0 < worth(5, 5) < worth(1, 5) < worth(0, 5)


def test_terms_of_one_root_are_worth_the_rarest(index: TantivyIndex) -> None:
    found = TermWorth(ANALYZER, HolderCounts(index))("lighthouse lighthouses lighthousekeeper")
    assert found == {term_root("lighth"): worth(0, 5)}


def test_counts_are_asked_once_and_forgotten_when_full(
    index: TantivyIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(index)
    weigh = TermWorth(ANALYZER, HolderCounts(counting))  # type: ignore[arg-type]  # a proxy
    first = weigh("the ferry")
    assert weigh("the ferry") == first
    assert counting.asked == ["the", "ferry"]
    monkeypatch.setattr(holder_counts, "MEMORY", 2)
    assert weigh("quay")[term_root("quay")] == worth(1, 5)
    assert weigh("the ferry") == first
    assert counting.asked == ["the", "ferry", "quay", "the", "ferry"]
    assert MEMORY > 2


def test_a_long_query_is_asked_for_its_first_terms(index: TantivyIndex) -> None:
    query = " ".join(f"w{number}" for number in range(QUERY_LIMIT + 50))
    weights = TermWorth(ANALYZER, HolderCounts(index))(query)
    assert len(weights) == QUERY_LIMIT
    assert term_root(f"w{QUERY_LIMIT}") not in weights
    assert TermWorth(ANALYZER, HolderCounts(index))("") == {}


def test_threads_get_the_same(index: TantivyIndex) -> None:
    weigh = TermWorth(ANALYZER, HolderCounts(index))
    queries = [f"the ferry w{number % 7} quay" for number in range(200)]
    expected = [TermWorth(ANALYZER, HolderCounts(index))(query) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(weigh, queries)) == expected


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_worth_is_never_negative_and_falls_with_the_holders(one: int, other: int) -> None:
    count = max(one, other)
    fewer, more = sorted((one, other))
    assert worth(fewer, count) >= worth(more, count) >= 0
    assert worth(fewer, count) == round(worth(fewer, count), 4)
