"""The first pages of a ranking ordered anew by a reranker."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from world_core.generation import Generation
from world_core.hits import HitMaker
from world_core.ranking import Ranking
from world_core.rerankers.base import Reranker
from world_core.steps import Steps
from world_core.types import Numbers

AT_ONCE = 4
"""Pairs scored between two looks at whether anybody still waits."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """Places of a ranking in their new order, and the reranker's score by version."""

    order: Numbers
    scores: Mapping[int, int]


class Reorderer:
    """Orders the first ``top`` pages by the score of the query and each one's best passage."""

    def __init__(
        self, generation: Generation, maker: HitMaker, reranker: Reranker, top: int
    ) -> None:
        self._passages = generation.passages
        self._maker = maker
        self._reranker = reranker
        self.top = top

    def reorder(self, query: str, ranking: Ranking, order: Numbers, steps: Steps) -> Reordered:
        """Return the order with its first ``top`` places sorted by score, ties by page number.

        The others keep their order below them; so do, at the end of the first, pages without a
        passage. What comes out does not depend on which part of an answer is asked for.

        Args:
            query: as it was asked.
            ranking: the candidates.
            order: places in the ranking, best first, shape (n,).
            steps: measures and may stop the work.

        Raises:
            RerankerError: the reranker failed.
            CancelledCallError: nobody waits any more.
        """
        head = order[: self.top]
        versions = ranking.versions[head].tolist()
        with steps.measure("rerank"):
            numbers = self._maker.best_passages(query, ranking, head)
        scores = self._scores(
            query,
            {
                version: number
                for version, number in zip(versions, numbers, strict=True)
                if number >= 0
            },
            steps,
        )
        scored = np.array([version in scores for version in versions], dtype=np.bool_)
        gained = np.array([scores.get(version, 0) for version in versions], dtype=np.int64)
        # Versions are in the order of their pages, of which a view shows one version each.
        first = np.lexsort((ranking.versions[head], -gained, ~scored))
        first[np.count_nonzero(scored) :] = np.flatnonzero(~scored)
        return Reordered(np.concatenate((head[first], order[self.top :])), scores)

    def _scores(self, query: str, passages: Mapping[int, int], steps: Steps) -> Mapping[int, int]:
        """Return the score of each version's passage; stops between some of them."""
        scores: dict[int, int] = {}
        waiting = iter(passages.items())
        while some := dict(itertools.islice(waiting, AT_ONCE)):
            with steps.measure("rerank"):
                texts = [self._passages.text(number) for number in some.values()]
                found = self._reranker.score(query, texts).tolist()
            scores |= dict(zip(some, found, strict=True))
        return scores
