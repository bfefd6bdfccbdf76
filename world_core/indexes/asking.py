"""What both engines do alike when asked: check, plan, leave out what cannot match."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import numpy as np

from world_core.indexes import clauses as common
from world_core.indexes.clauses import Plan
from world_core.indexes.last_made import LastMade
from world_core.types import Bitmap, Candidates, LexicalQuery, Numbers, Scores

Searcher = TypeVar("Searcher")


class AskedIndex(ABC, Generic[Searcher]):
    """An open index of ``count`` units; an engine says how it finds and scores what is planned."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._plan = LastMade(common.plan)

    @property
    def count(self) -> int:
        """Number of units."""
        return self._count

    def search(self, query: LexicalQuery, k: int, allowed: Bitmap | None = None) -> Candidates:
        """Return the best k matching units with score > 0, best first, ties by unit number.

        ``allowed`` (count,) restricts the answer exactly; collection statistics stay the world's.
        A field that the index lacks matches nothing.

        Raises:
            BadInputError: a weight, a term, the bitmap or k is unusable.
            IndexFailedError: the engine failed, or the index is closed.
        """
        common.check_size(k)
        plan = self._plan(query)
        bitmap = common.restriction(allowed, self._count)
        nothing = bitmap is not None and not bitmap.any()
        with self._lease("searching") as searcher:
            if nothing or not plan.scored or k == 0 or self._count == 0:
                return common.candidates((), (), k)
            return self._best(searcher, plan, k, bitmap)

    def score(self, query: LexicalQuery, units: Numbers) -> Scores:
        """Return the score of exactly these units, 0.0 where nothing matches.

        ``units`` (n,) in any order, the result (n,) in the same order, the same numbers as those
        of ``search``.

        Raises:
            BadInputError: a weight, a term or a unit is unusable.
            IndexFailedError: the engine failed, or the index is closed.
        """
        common.check_units(units, self._count)
        plan = self._plan(query)
        with self._lease("scoring") as searcher:
            if not plan.scored or units.size == 0:
                return np.zeros(units.shape, dtype=np.float64)
            distinct = np.unique(units)
            return common.spread(units, self._scored(searcher, plan, distinct))

    @abstractmethod
    def _lease(self, task: str) -> AbstractContextManager[Searcher]:
        """Keep the index open for one call; raises IndexFailedError when it is closed."""

    @abstractmethod
    def _best(self, searcher: Searcher, plan: Plan, k: int, allowed: Bitmap | None) -> Candidates:
        """Return the best k >= 1 units; ``allowed`` forbids some unit and allows some."""

    @abstractmethod
    def _scored(self, searcher: Searcher, plan: Plan, units: Numbers) -> Candidates:
        """Return the matches among these units, which ascend and are at least one."""
