"""How the scores of hits were put together, for those who ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from world_core.fusion import DENSE_FLOOR, LEXICAL_FLOOR, stretched
from world_core.passages import PassageFile
from world_core.ranking import SPARSE_FLOOR, Ranking
from world_core.types import Explanation, Hit, Numbers, Scores


def explain(
    hits: Sequence[Hit], ranking: Ranking, chosen: Numbers, passages: PassageFile
) -> tuple[Hit, ...]:
    """Return the hits, made of the places ``chosen`` in the ranking, with their explanations."""
    lexical, dense = None, None
    if ranking.lexical_ranks:
        lexical = ranking.scale.trust * stretched(ranking.lexical, LEXICAL_FLOOR)
    if ranking.dense_passages is not None:
        dense = stretched(ranking.dense, DENSE_FLOOR, ranking.scale.zero)
    sparse = None if ranking.sparse is None else stretched(ranking.sparse, SPARSE_FLOOR)
    explained = []
    for hit, place in zip(hits, chosen.tolist(), strict=True):
        meant = None if ranking.dense_passages is None else ranking.dense_passages.best(place)
        explanation = Explanation(
            lexical=_at(lexical, place),
            dense=_at(dense, place),
            sparse=_at(sparse, place),
            passage=passages.span(hit.passage) if hit.passage >= 0 else None,
            dense_passage=None if meant is None else passages.span(meant),
        )
        explained.append(replace(hit, explanation=explanation))
    return tuple(explained)


def _at(scores: Scores | None, place: int) -> float | None:
    return None if scores is None else float(scores[place])
