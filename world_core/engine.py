"""One search over one generation: the only file that knows the order of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from world_core import urls
from world_core.encoders.sparse import SparseVector
from world_core.errors import BadInputError, EncoderError
from world_core.fusion import fuse, fuse_three
from world_core.generation import Generation
from world_core.hits import HitMaker
from world_core.lexical_asking import LexicalAsking
from world_core.ranking import LEXICAL_FLOOR, Ranker, Ranking
from world_core.reranking import Reordered, Reorderer
from world_core.steps import Cancelled, Steps
from world_core.types import (
    DeadLink,
    FetchAnswer,
    FetchCall,
    LexicalQuery,
    Mode,
    Outcome,
    Scores,
    SearchAnswer,
    SearchCall,
    Timings,
    Vector,
)
from world_core.views import View


class _Encoded(NamedTuple):
    """What the encoders made of a query; ``None`` where they were not asked."""

    vector: Vector | None
    weights: SparseVector | None


class Engine:
    """Answers searches and fetches over one generation; safe for several threads at once."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._lexical = LexicalAsking(generation)
        self._ranker = Ranker(generation)
        self._maker = HitMaker(generation)
        self._reorderer: Reorderer | None = None
        if generation.reranker is not None:
            self._reorderer = Reorderer(
                generation, self._maker, generation.reranker, generation.rerank_top
            )

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
        vectors: Sequence[Vector | None] | None = None,
        cancelled: Cancelled | None = None,
        timings: Timings | None = None,
    ) -> list[SearchAnswer]:
        """Answer several searches, each exactly as if it had been asked alone.

        Args:
            calls: the searches.
            view: what may be seen; the world at its clock if ``None``.
            vectors: what the world's encoder gives for their queries, when the caller has asked it
                already; ``None`` in the place of one that failed, whose call must allow that.
            cancelled: asked between the steps; when it says true the work stops.
            timings: filled with seconds by step.

        Raises:
            CancelledCallError: ``cancelled`` said true.
            BadInputError: a dense search in a world without vectors.
            EncoderError, IndexFailedError, RerankerError, PageStoreError: a part of ours failed.
        """
        steps = Steps(cancelled, timings)
        seen = self.generation.plain_view if view is None else view
        # The vectors first: where one model gives both, its pass over them gives the weights too.
        self._check_modes(calls)
        if vectors is None:
            vectors = self._encode(calls, steps)
        asked = [self._answerable(*pair) for pair in zip(calls, vectors, strict=True)]
        encoded = map(_Encoded, vectors, self._weigh(asked, steps))
        answers = [
            self._answer(call, seen, one, steps) for call, one in zip(asked, encoded, strict=True)
        ]
        return [
            answer if call.mode is wanted.mode else replace(answer, degraded=call.mode)
            for answer, call, wanted in zip(answers, asked, calls, strict=True)
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

    def _check_modes(self, calls: Sequence[SearchCall]) -> None:
        if self.generation.encoder is None and any(call.mode is Mode.DENSE for call in calls):
            raise BadInputError(
                "This world has no dense index.", hint='Search with the mode "lexical".'
            )

    def _encode(self, calls: Sequence[SearchCall], steps: Steps) -> list[Vector | None]:
        encoder = self.generation.encoder
        vectors: list[Vector | None] = [None] * len(calls)
        wanted = [place for place, call in enumerate(calls) if call.needs_vector]
        if encoder is None or not wanted:
            return vectors
        try:
            with steps.measure("encode"):
                rows = encoder.encode_queries([calls[place].query for place in wanted])
        except EncoderError:
            if not all(calls[place].may_degrade for place in wanted):
                raise
            return vectors
        for place, row in zip(wanted, rows, strict=True):
            vectors[place] = row
        return vectors

    def _answerable(self, call: SearchCall, vector: Vector | None) -> SearchCall:
        """Return the call as it can be answered: of the lexical index alone without its vector.

        Raises:
            EncoderError: the call does not allow that.
        """
        if vector is not None or self.generation.encoder is None or not call.needs_vector:
            return call
        if not call.may_degrade:
            raise EncoderError("There is no vector for a search that cannot do without one.")
        return replace(call, mode=Mode.LEXICAL)

    def _weigh(self, calls: Sequence[SearchCall], steps: Steps) -> list[SparseVector | None]:
        encoder = self.generation.sparse_encoder
        weights: list[SparseVector | None] = [None] * len(calls)
        wanted = [place for place, call in enumerate(calls) if call.mode is Mode.HYBRID]
        if encoder is not None and wanted:
            with steps.measure("encode"):
                rows = encoder.encode_queries([calls[place].query for place in wanted])
            for place, row in zip(wanted, rows, strict=True):
                weights[place] = row
        return weights

    def _answer(
        self, call: SearchCall, view: View, encoded: _Encoded, steps: Steps
    ) -> SearchAnswer:
        if call.published_from is not None or call.published_to is not None:
            view = view.published_between(call.published_from, call.published_to)
        query = LexicalQuery(())
        if call.mode is not Mode.DENSE:
            with steps.measure("analyse"):
                query = self._lexical.query(call.query, view)
        reorderer = self._reorderer if call.mode is Mode.HYBRID and call.rerank else None
        ranking = self._ranker.rank(
            call,
            view,
            query,
            encoded.vector,
            steps,
            weights=encoded.weights,
            least=reorderer.top if reorderer is not None else 0,
        )
        with steps.measure("fuse"):
            scores = self._score(call.mode, ranking, encoded.vector)
            order = np.lexsort((ranking.versions, -scores))
            if call.mode is Mode.LEXICAL or encoded.vector is None:
                order = order[ranking.lexical[order] > LEXICAL_FLOOR]
        reordered = Reordered(order, {})
        if reorderer is not None:
            reordered = reorderer.reorder(call.query, ranking, order, steps)
        hits = self._maker.hits(
            call,
            ranking,
            scores,
            reordered.order[call.offset : call.offset + call.count],
            steps,
            reranked=reordered.scores,
        )
        if call.sitelinks and hits:
            with steps.measure("sitelinks"):
                hits = self._maker.with_sitelinks(hits, view)
        return SearchAnswer(Outcome.OK if hits else Outcome.EMPTY, hits)

    def _score(self, mode: Mode, ranking: Ranking, vector: Vector | None) -> Scores:
        if mode is Mode.LEXICAL or vector is None:
            return ranking.lexical
        if mode is Mode.DENSE:
            return ranking.dense
        manifest = self.generation.manifest
        weight = manifest.fusion.weight
        scale = ranking.scale
        if ranking.sparse is None or manifest.sparse is None:
            return fuse(ranking.lexical, ranking.dense, weight=weight, scale=scale)
        return fuse_three(
            ranking.lexical,
            ranking.dense,
            ranking.sparse,
            weight=weight,
            sparse_weight=manifest.sparse.weight,
            scale=scale,
        )
