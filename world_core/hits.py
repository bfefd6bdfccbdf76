"""The hits of an answer: what the page store says of a version, and a snippet for the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from world_core.evidence import Evidence, find_evidence, show_evidence
from world_core.generation import Generation
from world_core.ranking import Ranking
from world_core.steps import Steps
from world_core.term_worth import TermWorth
from world_core.types import Hit, Numbers, ScoreParts, Scores, SearchCall


class HitMaker:
    """Makes hits of ranked versions of one generation."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._worth = TermWorth(generation.analyzer, generation.lexical)

    def best_passages(self, query: str, versions: Sequence[int]) -> list[int]:
        """Return the passage of each version that says most about the query, -1 if it has none."""
        return [evidence.passage for evidence in self._evidence(query, versions, {})]

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
            meant = {
                version: ranking.dense_passages.best(place)
                for version, place in zip(versions, chosen.tolist(), strict=True)
                if ranking.dense_passages is not None
            }
            found = self._evidence(call.query, versions, meant)
            for place, meta, evidence in zip(chosen.tolist(), metas, found, strict=True):
                version = meta.version
                text = show_evidence(self._generation.passages, evidence)
                parts = ScoreParts(
                    lexical=float(ranking.lexical[place]),
                    dense=float(ranking.dense[place]),
                    lexical_rank=ranking.lexical_ranks.get(version),
                    dense_rank=ranking.dense_ranks.get(version),
                    sparse=None if ranking.sparse is None else float(ranking.sparse[place]),
                    sparse_rank=ranking.sparse_ranks.get(version),
                    rerank=reranked.get(version),
                )
                hits.append(Hit(meta, text, float(scores[place]), parts, evidence.passage))
        return tuple(hits)

    def _evidence(
        self, query: str, versions: Sequence[int], meant: Mapping[int, int | None]
    ) -> list[Evidence]:
        """Return the evidence of each version.

        Where no term of the query stands it is the opening of the passage that ``meant`` names, of
        the first one if none.
        """
        first = self._generation.first_passage
        ranges = [range(int(first[version]), int(first[version + 1])) for version in versions]
        passages = self._generation.passages
        found = find_evidence(passages, ranges, self._worth(query))
        for place, (version, some) in enumerate(zip(versions, ranges, strict=True)):
            if found[place].passage < 0 and some:
                named = meant.get(version)
                number = some.start if named is None else named
                found[place] = Evidence(number, begins=tuple(passages.sentences(number)))
        return found
