"""The hits of an answer: what the page store says of a version, and a snippet for the query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from world_core.evidence import Evidence, find_evidence, show_evidence
from world_core.explaining import explain
from world_core.generation import Generation
from world_core.ranking import Ranking
from world_core.sitelinks import SHOWN, SiteLinks
from world_core.steps import Steps
from world_core.term_worth import TermWorth
from world_core.types import Hit, Numbers, ScoreParts, Scores, SearchCall, Sitelink
from world_core.views import View

_LOOKED_AT = 2 * SHOWN
"""Sitelinks looked at for a hit, since those without a title or of one title are left out."""


class HitMaker:
    """Makes hits of ranked versions of one generation."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._worth = TermWorth(generation.analyzer, generation.holder_counts)
        self._sitelinks = SiteLinks.open(generation.folder)

    def best_passages(self, query: str, ranking: Ranking, chosen: Numbers) -> list[int]:
        """Return the passage that a hit of each place would show, -1 for a page without one."""
        return [evidence.passage for evidence in self._chosen(query, ranking, chosen)]

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
            found = self._chosen(call.query, ranking, chosen)
            for place, meta, evidence in zip(chosen.tolist(), metas, found, strict=True):
                text = show_evidence(self._generation.passages, evidence)
                parts = _parts(ranking, place, reranked)
                hits.append(Hit(meta, text, float(scores[place]), parts, evidence.passage))
        if call.explain:
            return explain(hits, ranking, chosen, self._generation.passages)
        return tuple(hits)

    def with_sitelinks(self, hits: Sequence[Hit], view: View) -> tuple[Hit, ...]:
        """Return the hits with the pages that those of them that are starts lead to in the view.

        A page without a title, or with that of an earlier one, is left out.

        Raises:
            PageStoreError: the page store failed.
        """
        targets = [self._visible(hit.meta.version, view) for hit in hits]
        wanted = sorted({version for some in targets for version in some})
        metas = dict(zip(wanted, self._generation.pages.metas(wanted), strict=True))
        shown = []
        for hit, some in zip(hits, targets, strict=True):
            urls: dict[str, str] = {}
            for version in some:
                urls.setdefault(metas[version].title, metas[version].url)
            urls.pop("", None)
            links = tuple(Sitelink(title, url) for title, url in urls.items())[:SHOWN]
            shown.append(replace(hit, sitelinks=links) if links else hit)
        return tuple(shown)

    def _visible(self, version: int, view: View) -> list[int]:
        """Return the versions that the view shows of the pages a version leads to."""
        found = map(view.version_of, self._sitelinks.of(version))
        return [shown for shown in found if shown is not None][:_LOOKED_AT]

    def _chosen(self, query: str, ranking: Ranking, chosen: Numbers) -> list[Evidence]:
        meant = ranking.dense_passages
        return self._evidence(
            query,
            ranking.versions[chosen].tolist(),
            lambda at: meant.best(int(chosen[at])) if meant else None,
        )

    def _evidence(
        self, query: str, versions: Sequence[int], meant: Callable[[int], int | None]
    ) -> list[Evidence]:
        """Return the evidence of each version.

        Where no term of the query stands it is the opening of the passage that ``meant`` names for
        the place among the versions, of the first one if none.
        """
        first = self._generation.first_passage
        ranges = [range(int(first[version]), int(first[version + 1])) for version in versions]
        passages = self._generation.passages
        found = find_evidence(passages, ranges, self._worth(query))
        for place, some in enumerate(ranges):
            if found[place].passage < 0 and some:
                named = meant(place)
                number = some.start if named is None else named
                found[place] = Evidence(number, begins=tuple(passages.sentences(number)))
        return found


def _parts(ranking: Ranking, place: int, reranked: Mapping[int, int]) -> ScoreParts:
    version = int(ranking.versions[place])
    return ScoreParts(
        lexical=float(ranking.lexical[place]),
        dense=float(ranking.dense[place]),
        lexical_rank=ranking.lexical_ranks.get(version),
        dense_rank=ranking.dense_ranks.get(version),
        sparse=None if ranking.sparse is None else float(ranking.sparse[place]),
        sparse_rank=ranking.sparse_ranks.get(version),
        rerank=reranked.get(version),
    )
