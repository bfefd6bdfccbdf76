"""How much each term of a long query counts: common ones less, since they only fill its sentence.

BM25 adds a term's score as often as the query says it, so the small words of a long question
together outweigh what it is about. From some length on a term counts by the square root of its
inverse document frequency against that of the rarest terms; a short query is left alone, because
there a common word is meant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from world_core.holder_counts import HolderCounts, idf

LONG_QUERY = 6
"""Distinct terms from which on a query is long, unless a recipe says otherwise."""

DIGITS = 4
"""Decimals of a factor, so that no machine's rounding can move a tie."""


class Weighing:
    """Weighs terms by how many units of an index hold them; safe under threads."""

    def __init__(self, counts: HolderCounts, long_query: int) -> None:
        """Weigh queries of at least ``long_query`` distinct terms; 0 weighs none."""
        self._counts = counts
        self._least = long_query

    def __call__(self, terms: Sequence[str]) -> Mapping[str, float]:
        """Return the factor, 0 to 1, of each term of a long query; none for a short one.

        Raises:
            IndexFailedError: the index failed.
        """
        if not self._least or len(set(terms)) < self._least:
            return {}
        units = self._counts.units
        return {term: factor(count, units) for term, count in self._counts.of(terms).items()}


def factor(holders: int, count: int) -> float:
    """Return the factor of a term that ``holders`` of ``count`` units hold."""
    rarest = math.log1p(count)
    return round(min(1.0, math.sqrt(idf(holders, count) / rarest)), DIGITS) if count else 1.0
