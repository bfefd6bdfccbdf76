"""The first pages of a ranking ordered anew by a reranker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from world_core.generation import Generation
from world_core.hits import HitMaker
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

    def reorder(self, query: str, versions: Numbers, order: Numbers, steps: Steps) -> Reordered:
        """Return the order with its first ``top`` places sorted by score, ties by page number.

        The others keep their order below them, and so do, among the first, pages without a
        passage. The answer to a query does not depend on which part of it is asked for.

        Args:
            query: as it was asked.
            versions: the ranked versions, ascending, shape (n,).
            order: places in ``versions``, best first, shape (n,) or fewer.
            steps: measures and may stop the work.

        Raises:
            RerankerError: the reranker failed.
            CancelledCallError: nobody waits any more.
        """
        head = order[: self.top]
        with steps.measure("rerank"):
            numbers = self._maker.best_passages(query, versions[head].tolist())
        scores: dict[int, int] = {}
        scored = [
            (int(version), number)
            for version, number in zip(versions[head], numbers, strict=True)
            if number >= 0
        ]
        for first in range(0, len(scored), AT_ONCE):
            some = scored[first : first + AT_ONCE]
            with steps.measure("rerank"):
                texts = [self._passages.text(number) for _, number in some]
                found = self._reranker.score(query, texts).tolist()
            scores |= {version: score for (version, _), score in zip(some, found, strict=True)}
        places = np.array(
            sorted(
                (place for place in head.tolist() if versions[place] in scores),
                key=lambda place: (-scores[int(versions[place])], versions[place]),
            ),
            dtype=np.int64,
        )
        unscored = head[[int(version) not in scores for version in versions[head]]]
        return Reordered(np.concatenate((places, unscored, order[self.top :])), scores)
