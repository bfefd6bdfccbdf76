"""Candidates of every index inside a view, with every score completed for their union."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from world_core.generation import Generation
from world_core.steps import Steps
from world_core.types import Candidates, LexicalQuery, Numbers, Scores, SearchCall, Vector
from world_core.views import View

BASE_DEPTH = 200
"""Candidates taken from each index; doubled until it is twice the last rank asked for."""

LEXICAL_FLOOR = 0.0
DENSE_FLOOR = -1.0


@dataclass(frozen=True, slots=True)
class Ranking:
    """Versions of the candidate union, ascending, with both completed scores and list ranks."""

    versions: Numbers
    lexical: Scores
    dense: Scores
    lexical_ranks: Mapping[int, int]
    dense_ranks: Mapping[int, int]


class Ranker:
    """Collects candidates of one generation and completes their scores."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def rank(
        self,
        call: SearchCall,
        view: View,
        query: LexicalQuery,
        vector: Vector | None,
        steps: Steps,
    ) -> Ranking:
        """Collect candidates of both indexes inside the view and complete both scores."""
        last = call.offset + call.count
        unit = self._generation.manifest.lexical.unit
        index, dense = self._generation.lexical, self._generation.dense
        lexical_ranks: Mapping[int, int] = {}
        dense_ranks: Mapping[int, int] = {}
        with steps.measure("lexical"):
            if not query.is_empty:
                seen = view.allowed(unit)
                lexical_ranks = self._ranks(lambda k: index.search(query, k, seen), unit, last)
        with steps.measure("dense"):
            if vector is not None and dense is not None:
                found, shown, wanted = dense, view.allowed("passage"), vector
                dense_ranks = self._ranks(lambda k: found.search(wanted, k, shown), "passage", last)
        versions = np.array(sorted({*lexical_ranks, *dense_ranks}), dtype=np.int64)
        with steps.measure("complete"):
            lexical = self._complete_lexical(query, versions, unit)
            cosine = self._complete_dense(vector, versions)
        return Ranking(versions, lexical, cosine, lexical_ranks, dense_ranks)

    def _ranks(
        self, search: Callable[[int], Candidates], unit: str, last: int
    ) -> Mapping[int, int]:
        """Return the 1-based rank of each version by its first unit in an index's list.

        A list of passages may hold few versions: it is doubled until it has as many as the last
        rank asked for, or all there are, so that long pages take no hits away.
        """
        depth = _depth(last)
        while True:
            units = search(depth).units
            versions = (
                units if unit == "version" else self._generation.columns.passage_version[units]
            )
            distinct = dict.fromkeys(versions.tolist())
            if len(distinct) >= last or units.size < depth:
                return {version: rank for rank, version in enumerate(distinct, start=1)}
            depth *= 2

    def _complete_lexical(self, query: LexicalQuery, versions: Numbers, unit: str) -> Scores:
        if query.is_empty or not versions.size:
            return np.full(versions.size, LEXICAL_FLOOR)
        if unit == "version":
            return self._generation.lexical.score(query, versions)
        units, starts = self._passages_of(versions)
        return _maxima(self._generation.lexical.score(query, units), starts, LEXICAL_FLOOR)

    def _complete_dense(self, vector: Vector | None, versions: Numbers) -> Scores:
        if vector is None or self._generation.dense is None or not versions.size:
            return np.full(versions.size, DENSE_FLOOR)
        units, starts = self._passages_of(versions)
        return _maxima(self._generation.dense.score(vector, units), starts, DENSE_FLOOR)

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
