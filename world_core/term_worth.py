"""How much each term of a query counts for a snippet: the rarer in the world, the more."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from world_core.analysis import QUERY_LIMIT, Analyzer
from world_core.holder_counts import HolderCounts, idf
from world_core.passages import term_root

DIGITS = 4
"""Decimals of a weight, so that no machine's rounding can move a tie."""


class TermWorth:
    """Weighs the terms of queries by an index's counts; safe under threads."""

    def __init__(self, analyzer: Analyzer, counts: HolderCounts) -> None:
        self._analyzer = analyzer
        self._counts = counts

    def __call__(self, query: str) -> Mapping[int, float]:
        """Return the weight of each root of the query, that of its rarest term.

        Raises:
            IndexFailedError: the index failed.
        """
        found = (token.term for token in self._analyzer.tokens(query))
        terms = list(islice(dict.fromkeys(found), QUERY_LIMIT))
        units = self._counts.units
        weights: dict[int, float] = {}
        for term, holders in self._counts.of(terms).items():
            root = term_root(term)
            weights[root] = max(weights.get(root, 0.0), worth(holders, units))
        return weights


def worth(holders: int, count: int) -> float:
    """Return what a term in ``holders`` of ``count`` units is worth, rounded and never below 0."""
    return round(idf(holders, count), DIGITS)
