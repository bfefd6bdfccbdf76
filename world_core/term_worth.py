"""How much each term of a query counts for a snippet: the rarer in the world, the more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice

from world_core.analysis import QUERY_LIMIT, Analyzer
from world_core.indexes.lexical import LexicalIndex
from world_core.passages import term_root

FIELD = "body"
"""Where the units that hold a term are counted."""

DIGITS = 4
"""Decimals of a weight, so that no machine's rounding can move a tie."""

MEMORY = 100_000
"""Terms whose weights are remembered; all are forgotten when it is full."""


class TermWorth:
    """Weighs the terms of queries by an index's counts; safe under threads."""

    def __init__(self, analyzer: Analyzer, index: LexicalIndex) -> None:
        self._analyzer = analyzer
        self._index = index
        self._known: dict[str, float] = {}

    def __call__(self, query: str) -> Mapping[int, float]:
        """Return the weight of each root of the query, that of its rarest term.

        Raises:
            IndexFailedError: the index failed.
        """
        found = (token.term for token in self._analyzer.tokens(query))
        terms = list(islice(dict.fromkeys(found), QUERY_LIMIT))
        known = self._known
        missing = [term for term in terms if term not in known]
        made: dict[str, float] = {}
        if missing:
            count = self._index.count
            holders = self._index.holders(FIELD, missing)
            made = {term: worth(n, count) for term, n in zip(missing, holders, strict=True)}
            if len(known) + len(made) > MEMORY:
                self._known = {}
            self._known |= made
        weights: dict[int, float] = {}
        for term in terms:
            root = term_root(term)
            weight = made[term] if term in made else known[term]
            weights[root] = max(weights.get(root, 0.0), weight)
        return weights


def worth(holders: int, count: int) -> float:
    """Return the inverse document frequency of BM25 for a term in ``holders`` of ``count`` units.

    Never below 0, since ``log(1 + x)`` is Lucene's form of it.
    """
    return round(math.log1p((count - holders + 0.5) / (holders + 0.5)), DIGITS)
