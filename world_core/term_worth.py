"""How much each term of a query counts for a snippet: the rarer in the world, the more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice

from world_core.analysis import QUERY_LIMIT, Analyzer
from world_core.holder_counts import HolderCounts
from world_core.indexes.lexical import LexicalIndex
from world_core.passages import term_root

DIGITS = 4
"""Decimals of a weight, so that no machine's rounding can move a tie."""


class TermWorth:
    """Weighs the terms of queries by an index's counts; safe under threads."""

    def __init__(self, analyzer: Analyzer, index: LexicalIndex) -> None:
        self._analyzer = analyzer
        self._counts = HolderCounts(index)

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
    """Return the inverse document frequency of BM25 for a term in ``holders`` of ``count`` units.

    Never below 0, since ``log(1 + x)`` is Lucene's form of it.
    """
    return round(math.log1p((count - holders + 0.5) / (holders + 0.5)), DIGITS)
