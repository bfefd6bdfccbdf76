"""One search over one generation: the only file that knows the order of the steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from world_core import urls
from world_core.analysis import term_hash
from world_core.errors import BadInputError, CancelledCallError
from world_core.fusion import fuse
from world_core.generation import Generation
from world_core.snippets import best_passage, snippet
from world_core.types import (
    Candidates,
    DeadLink,
    FetchAnswer,
    FetchCall,
    Hit,
    LexicalQuery,
    Mode,
    Numbers,
    Outcome,
    ScoreParts,
    Scores,
    SearchAnswer,
    SearchCall,
    Timings,
    Vector,
)
from world_core.views import View

BASE_DEPTH = 200
"""Candidates taken from each index; doubled until it is twice the last rank asked for."""

LEXICAL_FLOOR = 0.0
DENSE_FLOOR = -1.0

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Versions of the candidate union, ascending, with both completed scores and list ranks."""

    versions: Numbers
    lexical: Scores
    dense: Scores
    lexical_ranks: Mapping[int, int]
    dense_ranks: Mapping[int, int]


class Engine:
    """Answers searches and fetches over one generation; safe for several threads at once."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation

    def search(
        self,
        call: SearchCall,
        view: View | None = None,
        *,
        cancelled: Cancelled | None = None,
        timings: Timings | None = None,
    ) -> SearchAnswer:
        """Answer one search; see :meth:`search_batch`."""
        return self.search_batch([call], view, cancelled=cancelled, timings=timings)[0]

    def search_batch(
        self,
        calls: Sequence[SearchCall],
        view: View | None = None,
        *,
        cancelled: Cancelled | None = None,
        timings: Timings | None = None,
    ) -> list[SearchAnswer]:
        """Answer several searches, each exactly as if it had been asked alone.

        Args:
            calls: the searches.
            view: what may be seen; the world at its clock if ``None``.
            cancelled: asked between the steps; when it says true the work stops.
            timings: filled with seconds by step.

        Raises:
            CancelledCallError: ``cancelled`` said true.
            BadInputError: a dense search in a world without vectors.
            EncoderError, IndexFailedError, PageStoreError: a part of ours failed.
        """
        steps = _Steps(cancelled, timings)
        seen = self.generation.plain_view if view is None else view
        vectors = self._encode(calls, steps)
        return [
            self._answer(call, seen, vector, steps)
            for call, vector in zip(calls, vectors, strict=True)
        ]

    def fetch(self, call: FetchCall, view: View | None = None) -> FetchAnswer:
        """Return the version of the addressed page that the view shows, or why there is none.

        Raises:
            BadInputError: the text is no http or https address.
            PageStoreError: the page store failed; never reported as an absent page.
        """
        key = urls.canonical(call.url)
        if not key:
            raise BadInputError(
                f"{call.url[:200]!r} is not an http or https address.",
                hint="Give an absolute address such as https://atlas.example/.",
            )
        seen = self.generation.plain_view if view is None else view
        found = self.generation.pages.find(key)
        if found is None:
            return FetchAnswer(Outcome.NOT_IN_WORLD, call.url)
        if isinstance(found, DeadLink):
            if seen.clock is not None and found.time > seen.clock:
                return FetchAnswer(Outcome.NOT_YET_PUBLISHED, call.url)
            return FetchAnswer(Outcome.DEAD_LINK, found.url, status=found.status)
        version = seen.version_of(found)
        if version is None:
            return FetchAnswer(Outcome.NOT_YET_PUBLISHED, call.url)
        stored = self.generation.pages.read(version)
        return FetchAnswer(Outcome.OK, stored.meta.url, version=stored)

    def close(self) -> None:
        """Release the generation."""
        self.generation.close()

    def _encode(self, calls: Sequence[SearchCall], steps: _Steps) -> list[Vector | None]:
        encoder = self.generation.encoder
        vectors: list[Vector | None] = [None] * len(calls)
        wanted = [place for place, call in enumerate(calls) if call.mode is not Mode.LEXICAL]
        if encoder is None:
            if any(call.mode is Mode.DENSE for call in calls):
                raise BadInputError(
                    "This world has no dense index.", hint='Search with the mode "lexical".'
                )
            return vectors
        if wanted:
            with steps.measure("encode"):
                rows = encoder.encode_queries([calls[place].query for place in wanted])
            for place, row in zip(wanted, rows, strict=True):
                vectors[place] = row
        return vectors

    def _answer(
        self, call: SearchCall, view: View, vector: Vector | None, steps: _Steps
    ) -> SearchAnswer:
        if call.published_from is not None or call.published_to is not None:
            view = view.published_between(call.published_from, call.published_to)
        query = LexicalQuery(())
        if call.mode is not Mode.DENSE:
            with steps.measure("analyse"):
                query = self.generation.analyzer.query(call.query)
        ranking = self._rank(call, view, query, vector, steps)
        with steps.measure("fuse"):
            scores = self._score(call.mode, ranking, vector)
            order = np.lexsort((ranking.versions, -scores))
            if call.mode is Mode.LEXICAL or vector is None:
                order = order[ranking.lexical[order] > LEXICAL_FLOOR]
            chosen = order[call.offset : call.offset + call.count]
        hits = self._hits(call, ranking, scores, chosen, steps)
        return SearchAnswer(Outcome.OK if hits else Outcome.EMPTY, hits)

    def _score(self, mode: Mode, ranking: _Ranking, vector: Vector | None) -> Scores:
        if mode is Mode.LEXICAL or vector is None:
            return ranking.lexical
        if mode is Mode.DENSE:
            return ranking.dense
        return fuse(ranking.lexical, ranking.dense, weight=self.generation.manifest.fusion.weight)

    def _rank(
        self,
        call: SearchCall,
        view: View,
        query: LexicalQuery,
        vector: Vector | None,
        steps: _Steps,
    ) -> _Ranking:
        """Collect candidates of both indexes inside the view and complete both scores."""
        last = call.offset + call.count
        unit = self.generation.manifest.lexical.unit
        index, dense = self.generation.lexical, self.generation.dense
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
        return _Ranking(versions, lexical, cosine, lexical_ranks, dense_ranks)

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
                units if unit == "version" else self.generation.columns.passage_version[units]
            )
            distinct = dict.fromkeys(versions.tolist())
            if len(distinct) >= last or units.size < depth:
                return {version: rank for rank, version in enumerate(distinct, start=1)}
            depth *= 2

    def _complete_lexical(self, query: LexicalQuery, versions: Numbers, unit: str) -> Scores:
        if query.is_empty or not versions.size:
            return np.full(versions.size, LEXICAL_FLOOR)
        if unit == "version":
            return self.generation.lexical.score(query, versions)
        units, starts = self._passages_of(versions)
        return _maxima(self.generation.lexical.score(query, units), starts, LEXICAL_FLOOR)

    def _complete_dense(self, vector: Vector | None, versions: Numbers) -> Scores:
        if vector is None or self.generation.dense is None or not versions.size:
            return np.full(versions.size, DENSE_FLOOR)
        units, starts = self._passages_of(versions)
        return _maxima(self.generation.dense.score(vector, units), starts, DENSE_FLOOR)

    def _passages_of(self, versions: Numbers) -> tuple[Numbers, Numbers]:
        """Return the passages of the versions one after another, and where each version starts.

        Shapes (p,) and (versions + 1,).
        """
        first = self.generation.first_passage[versions]
        counts = self.generation.first_passage[versions + 1] - first
        starts = np.concatenate(([0], np.cumsum(counts)))
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        return np.repeat(first, counts) + within, starts

    def _hits(
        self, call: SearchCall, ranking: _Ranking, scores: Scores, chosen: Numbers, steps: _Steps
    ) -> tuple[Hit, ...]:
        versions = ranking.versions[chosen].tolist()
        if not versions:
            return ()
        with steps.measure("pages"):
            metas = self.generation.pages.metas(versions)
        hits = []
        with steps.measure("snippets"):
            weights = self._term_weights(call.query)
            for place, meta in zip(chosen.tolist(), metas, strict=True):
                version = meta.version
                passage, text = self._snippet(version, weights)
                parts = ScoreParts(
                    lexical=float(ranking.lexical[place]),
                    dense=float(ranking.dense[place]),
                    lexical_rank=ranking.lexical_ranks.get(version),
                    dense_rank=ranking.dense_ranks.get(version),
                )
                hits.append(Hit(meta, text, float(scores[place]), parts, passage))
        return tuple(hits)

    def _term_weights(self, query: str) -> Mapping[int, float]:
        """Weigh the query's terms by length: short words of a query say little about a passage."""
        return {
            term_hash(token.term): 0.3 if len(token.term) <= 3 and token.term.isascii() else 1.0
            for token in self.generation.analyzer.tokens(query)
        }

    def _snippet(self, version: int, weights: Mapping[int, float]) -> tuple[int, str]:
        first, end = (int(self.generation.first_passage[version + step]) for step in (0, 1))
        if first == end:
            return -1, ""
        passages = self.generation.passages
        number = best_passage(passages, range(first, end), weights)
        hashes, starts = passages.terms(number)
        text = snippet(passages.text(number), passages.sentences(number), hashes, starts, weights)
        return number, text


class _Steps:
    """Measures the steps of a call and stops between them when nobody waits any more."""

    def __init__(self, cancelled: Cancelled | None, timings: Timings | None) -> None:
        self._cancelled = cancelled
        self._timings = timings

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        if self._cancelled is not None and self._cancelled():
            raise CancelledCallError(f"Nobody waits for this call; stopped before {step}.")
        started = time.perf_counter()
        yield
        if self._timings is not None:
            self._timings.add(step, time.perf_counter() - started)


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
