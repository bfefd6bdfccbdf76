"""What the scores of a query are worth in one generation, from all its terms and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

import numpy as np

from world_core.analysis import QUERY_LIMIT, Token
from world_core.fusion import DENSE_FLOOR, Scale, lexical_trust, zero_cosine
from world_core.generation import Generation
from world_core.term_worth import worth
from world_core.types import Vector

SAMPLE = 256
"""Vectors, evenly spread over the index, that stand for all of them."""

UNKNOWN_PAIR = 0.5
"""What an unknown pair of characters counts: about half the pairs of a run straddle two words."""

LEAST = 16
"""Vectors below which a sample says nothing about the spread of cosines."""


class Scaling:
    """Makes the scale of a query; safe under threads.

    Both numbers are the world's, as the statistics of BM25 are: a view changes neither, so no page
    that is hidden or added moves the score of another.
    """

    def __init__(self, generation: Generation) -> None:
        self._analyzer = generation.analyzer
        self._counts = generation.holder_counts
        self._dense = generation.dense
        rows = np.zeros(0, dtype=np.int64) if self._dense is None else self._dense.rows
        size = min(SAMPLE, rows.size)
        self._sample = rows[np.arange(size) * rows.size // max(1, size)]

    def of(self, text: str, vector: Vector) -> Scale:
        """Return the scale of a query.

        Raises:
            IndexFailedError: an index failed.
        """
        return Scale(self._zero(vector), lexical_trust(self.known(text)))

    def known(self, text: str) -> float:
        """Return the share of the query's terms that occur in the world, by their rarity.

        An unknown pair out of a run of characters counts ``UNKNOWN_PAIR``. 1.0 without terms.
        """
        shares = _shares(self._analyzer.tokens(text))
        counts = self._counts.of(list(islice(shares, QUERY_LIMIT)))
        present, absent = 0.0, 0.0
        for term, holders in counts.items():
            value = worth(holders, self._counts.units)
            if holders:
                present += value
            else:
                absent += value * shares[term]
        return present / (present + absent) if present + absent else 1.0

    def _zero(self, vector: Vector) -> float:
        if self._dense is None or self._sample.size < LEAST:
            return DENSE_FLOOR
        return zero_cosine(self._dense.score(vector, self._sample))


def _shares(tokens: Sequence[Token]) -> dict[str, float]:
    """Return what each term counts where it is unknown; pairs of a run overlap their neighbours."""
    shares = {token.term: 1.0 for token in tokens}
    for before, after in pairwise(tokens):
        if after.start < before.end:
            shares[before.term] = shares[after.term] = UNKNOWN_PAIR
    return shares
