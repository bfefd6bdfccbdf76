"""The hits of an answer: what the page store says of a version, and a snippet for the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from world_core.analysis import term_hash
from world_core.generation import Generation
from world_core.ranking import Ranking
from world_core.snippets import best_passage, snippet
from world_core.steps import Steps
from world_core.types import Hit, Numbers, ScoreParts, Scores, SearchCall


class HitMaker:
    """Makes hits of ranked versions of one generation."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def best_passages(self, query: str, versions: Sequence[int]) -> list[int]:
        """Return the passage of each version that says most about the query, -1 if it has none."""
        weights = self._term_weights(query)
        return [self._best(version, weights) for version in versions]

    def hits(
        self,
        call: SearchCall,
        ranking: Ranking,
        scores: Scores,
        chosen: Numbers,
        steps: Steps,
        *,
        reranked: Mapping[int, int] = MappingProxyType({}),
    ) -> tuple[Hit, ...]:
        """Return the hits of ``chosen``, places in the ranking, in that order.

        ``reranked`` holds the reranker's score by version.
        """
        versions = ranking.versions[chosen].tolist()
        if not versions:
            return ()
        with steps.measure("pages"):
            metas = self._generation.pages.metas(versions)
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
                    sparse=None if ranking.sparse is None else float(ranking.sparse[place]),
                    sparse_rank=ranking.sparse_ranks.get(version),
                    rerank=reranked.get(version),
                )
                hits.append(Hit(meta, text, float(scores[place]), parts, passage))
        return tuple(hits)

    def _term_weights(self, query: str) -> Mapping[int, float]:
        """Weigh the query's terms by length: short words of a query say little about a passage."""
        return {
            term_hash(token.term): 0.3 if len(token.term) <= 3 and token.term.isascii() else 1.0
            for token in self._generation.analyzer.tokens(query)
        }

    def _best(self, version: int, weights: Mapping[int, float]) -> int:
        first, end = (int(self._generation.first_passage[version + step]) for step in (0, 1))
        if first == end:
            return -1
        return best_passage(self._generation.passages, range(first, end), weights)

    def _snippet(self, version: int, weights: Mapping[int, float]) -> tuple[int, str]:
        number = self._best(version, weights)
        if number < 0:
            return number, ""
        passages = self._generation.passages
        hashes, starts = passages.terms(number)
        text = snippet(passages.text(number), passages.sentences(number), hashes, starts, weights)
        return number, text
