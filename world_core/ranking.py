"""Candidates of every index inside a view, with every score completed for their union."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from world_core.encoders.sparse import SparseVector
from world_core.fusion import PLAIN, Scale
from world_core.generation import Generation
from world_core.scaling import Scaling
from world_core.steps import Steps
from world_core.types import (
    Candidates,
    LexicalQuery,
    Mode,
    Numbers,
    Scores,
    SearchCall,
    Vector,
)
from world_core.views import View

BASE_DEPTH = 100
"""Candidates taken from each index; doubled until it is twice the last rank asked for."""

LEXICAL_FLOOR = 0.0
DENSE_FLOOR = -1.0
SPARSE_FLOOR = 0.0


@dataclass(frozen=True, slots=True)
class PassageScores:
    """The score of every passage of some versions, one version after another.

    ``passages``, ``scores`` (p,); ``starts`` (versions + 1,): where each version's begin.
    """

    passages: Numbers
    scores: Scores
    starts: Numbers

    def best(self, place: int) -> int | None:
        """Return the best passage of the version at this place, the first of equals."""
        first, end = self.starts[place : place + 2].tolist()
        return int(self.passages[first + self.scores[first:end].argmax()]) if first < end else None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Versions of the candidate union, ascending, with all completed scores and list ranks.

    ``sparse`` is ``None`` where the sparse index was not asked, ``dense_passages`` where the dense
    one was not. ``scale`` says what the scores of a hybrid search are worth.
    """

    versions: Numbers
    lexical: Scores
    dense: Scores
    lexical_ranks: Mapping[int, int]
    dense_ranks: Mapping[int, int]
    sparse: Scores | None = None
    sparse_ranks: Mapping[int, int] = field(default_factory=dict)
    dense_passages: PassageScores | None = None
    scale: Scale = PLAIN


@dataclass(frozen=True, slots=True)
class _Found:
    """Versions that an index listed, best first, each with the score of its best unit."""

    scores: Mapping[int, float] = field(default_factory=dict)

    def ranks(self) -> dict[int, int]:
        """Return the 1-based rank of each version."""
        return {version: rank for rank, version in enumerate(self.scores, start=1)}


class Ranker:
    """Collects candidates of one generation and completes their scores."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._scaling = Scaling(generation)

    def rank(
        self,
        call: SearchCall,
        view: View,
        query: LexicalQuery,
        vector: Vector | None,
        steps: Steps,
        *,
        weights: SparseVector | None = None,
        least: int = 0,
    ) -> Ranking:
        """Collect candidates of every index inside the view and complete all scores.

        Args:
            call: says which ranks are asked for.
            view: what may be seen.
            query: asks the lexical index, if it is not empty.
            vector: asks the dense index.
            steps: measures and may stop the work.
            weights: ask the sparse index.
            least: ranks that are wanted at least, whatever the call asks for.
        """
        last = max(call.offset + call.count, least)
        unit = self._generation.manifest.lexical.unit
        index, dense = self._generation.lexical, self._generation.dense
        listed, near = _Found(), _Found()
        with steps.measure("lexical"):
            if not query.is_empty:
                seen = view.allowed(unit)
                listed = self._found(lambda k: index.search(query, k, seen), unit, last)
        with steps.measure("dense"):
            if vector is not None and dense is not None:
                found, shown, wanted = dense, view.allowed("passage"), vector
                near = self._found(lambda k: found.search(wanted, k, shown), "passage", last)
        weighed = self._sparse(weights, view, last, steps)
        versions = np.array(sorted({*listed.scores, *near.scores, *weighed.scores}), dtype=np.int64)
        with steps.measure("complete"):
            lexical = self._complete_lexical(query, versions, unit, listed)
            cosines = self._dense_passages(vector, versions)
            cosine = np.full(versions.size, DENSE_FLOOR)
            if cosines is not None:
                cosine = _maxima(cosines.scores, cosines.starts, DENSE_FLOOR)
            products = self._complete_sparse(weights, versions)
            scale = PLAIN
            if call.mode is Mode.HYBRID and vector is not None:
                scale = self._scaling.of(call.query, vector)
        return Ranking(
            *(versions, lexical, cosine, listed.ranks(), near.ranks(), products, weighed.ranks()),
            dense_passages=cosines,
            scale=scale,
        )

    def _sparse(self, weights: SparseVector | None, view: View, last: int, steps: Steps) -> _Found:
        index = self._generation.sparse
        if weights is None or index is None:
            return _Found()
        with steps.measure("sparse"):
            seen = view.allowed("passage")
            return self._found(lambda k: index.search(weights, k, seen), "passage", last)

    def _found(self, search: Callable[[int], Candidates], unit: str, last: int) -> _Found:
        """Return the versions of an index's list, each by its first and so best unit.

        A list of passages may hold few versions: it is doubled until it has as many as the last
        rank asked for, or all there are, so that long pages take no hits away.
        """
        depth = _depth(last)
        while True:
            candidates = search(depth)
            units = candidates.units
            versions = (
                units if unit == "version" else self._generation.columns.passage_version[units]
            )
            scores: dict[int, float] = {}
            for version, score in zip(versions.tolist(), candidates.scores.tolist(), strict=True):
                scores.setdefault(version, score)
            if len(scores) >= last or units.size < depth:
                return _Found(scores)
            depth *= 2

    def _complete_lexical(
        self, query: LexicalQuery, versions: Numbers, unit: str, listed: _Found
    ) -> Scores:
        """Return the score of every version; those that the index did not list are asked for."""
        known = listed.scores
        scores = np.array([known.get(version, LEXICAL_FLOOR) for version in versions.tolist()])
        missing = np.array([version not in known for version in versions.tolist()], dtype=np.bool_)
        if query.is_empty or not missing.any():
            return scores
        if unit == "version":
            scores[missing] = self._generation.lexical.score(query, versions[missing])
            return scores
        units, starts = self._passages_of(versions[missing])
        found = self._generation.lexical.score(query, units)
        scores[missing] = _maxima(found, starts, LEXICAL_FLOOR)
        return scores

    def _dense_passages(self, vector: Vector | None, versions: Numbers) -> PassageScores | None:
        if vector is None or self._generation.dense is None or not versions.size:
            return None
        units, starts = self._passages_of(versions)
        return PassageScores(units, self._generation.dense.score(vector, units), starts)

    def _complete_sparse(self, weights: SparseVector | None, versions: Numbers) -> Scores | None:
        index = self._generation.sparse
        if weights is None or index is None:
            return None
        units, starts = self._passages_of(versions)
        return _maxima(index.score(weights, units), starts, SPARSE_FLOOR)

    def _passages_of(self, versions: Numbers) -> tuple[Numbers, Numbers]:
        """Return the passages of the versions one after another, and where each version starts.

        Shapes (p,) and (versions + 1,).
        """
        first = self._generation.first_passage[versions]
        counts = self._generation.first_passage[versions + 1] - first
        starts = np.concatenate(([0], np.cumsum(counts)))
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        return np.repeat(first, counts) + within, starts


def _depth(last_rank: int) -> int:
    depth = BASE_DEPTH
    while depth < 2 * last_rank:
        depth *= 2
    return depth


def _maxima(values: Scores, starts: Numbers, floor: float) -> Scores:
    """Return the largest value of each slice, the floor for empty slices; shape (slices,)."""
    best = np.full(starts.size - 1, floor)
    filled = starts[1:] > starts[:-1]
    if values.size:
        best[filled] = np.maximum(np.maximum.reduceat(values, starts[:-1][filled]), floor)
    return best
