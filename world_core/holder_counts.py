"""How many units of a lexical index hold a term: asked once, then remembered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from world_core.indexes.lexical import LexicalIndex

FIELD = "body"
"""Where the units that hold a term are counted."""

MEMORY = 100_000
"""Terms whose counts are remembered; all are forgotten when it is full."""


class HolderCounts:
    """The counts of one index; safe under threads."""

    def __init__(self, index: LexicalIndex) -> None:
        self._index = index
        self._known: dict[str, int] = {}

    @property
    def units(self) -> int:
        """Number of units of the index."""
        return self._index.count

    def of(self, terms: Sequence[str]) -> Mapping[str, int]:
        """Return the number of units that hold each term, each term once, in the order given.

        Raises:
            IndexFailedError: the index failed.
        """
        distinct = list(dict.fromkeys(terms))
        known = self._known
        missing = [term for term in distinct if term not in known]
        made: dict[str, int] = {}
        if missing:
            made = dict(zip(missing, self._index.holders(FIELD, missing), strict=True))
            if len(known) + len(made) > MEMORY:
                # A new table: a reader at work keeps the one that it began with.
                self._known = made
            else:
                known.update(made)
        return {term: made[term] if term in made else known[term] for term in distinct}


def idf(holders: int, count: int) -> float:
    """Return the inverse document frequency of BM25 for a term in ``holders`` of ``count`` units.

    Never below 0, since ``log(1 + x)`` is Lucene's form of it.
    """
    return math.log1p((count - holders + 0.5) / (holders + 0.5))
