"""Combines the lexical and the dense scores of one candidate union into one score.

Both scores must be *completed*: every candidate of either list has its own BM25 and its own
cosine, so a score never depends on where a candidate list was cut.

What a score is worth differs between queries and encoders, and a ``Scale`` says how: multilingual
encoders keep all their cosines between 0.7 and 0.9, so a stretch from -1 would leave the order to
BM25; and BM25 has no measure of a bad match, so its best candidate is stretched to 1 even where a
query in a language that the world does not have meets it in a name and a short word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from world_core.errors import BadInputError
from world_core.types import Scores

LEXICAL_FLOOR = 0.0
"""BM25 of a unit in which no term of the query occurs: the least it can be."""

DENSE_FLOOR = -1.0
"""The least a cosine can be; also the score of a passage that has no vector."""

SPARSE_FLOOR = 0.0
"""The least a product of learned weights can be: no token of the query is in the passage."""


FULL_TRUST = 0.6
"""Share of a query's term weight that a world must know for its lexical scores to count fully."""

SPREADS = 8.0
"""Standard deviations below the mean cosine of a query where its zero lies."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What the scores of one query are worth.

    Attributes:
        zero: the cosine that is worth nothing, as lower ones are, from -1 to 1.
        trust: how much of its share the lexical score keeps, from 0 to 1.
    """

    zero: float = DENSE_FLOOR
    trust: float = 1.0


PLAIN = Scale()
"""Every cosine is worth something, and lexical scores count fully."""


def zero_cosine(cosines: Scores) -> float:
    """Return the cosine that is worth nothing to a query, from its cosines with a sample.

    It lies ``SPREADS`` standard deviations below the mean, and not below -1, so that the habits of
    an encoder do not decide what its scores weigh. A sample without any spread says nothing: -1.
    """
    spread = float(cosines.std()) if cosines.size else 0.0
    if spread == 0.0:
        return DENSE_FLOOR
    # Few decimals, so that no machine's rounding can move a tie.
    return round(min(1.0, max(DENSE_FLOOR, float(cosines.mean()) - SPREADS * spread)), 4)


def lexical_trust(known: float) -> float:
    """Return how much lexical scores count, 0 to 1, for a query of which a share is known.

    A world knows most of a query in its own language, measured by the weight of the terms. In
    another language it knows names, numbers and words that are spelt alike and mean something else;
    so below ``FULL_TRUST`` trust falls steeply, with the fourth power of the share.

    Args:
        known: share of the query's terms that occur in the world, by inverse document frequency.
    """
    return min(1.0, max(0.0, known) / FULL_TRUST) ** 4


def fuse(lexical: Scores, dense: Scores, *, weight: float = 0.5, scale: Scale = PLAIN) -> Scores:
    """Return the fused score of every candidate, in the order given; more is better.

    Each score is stretched from its zero (BM25 0, cosine ``scale.zero``) to the best of the union,
    then both are mixed: ``weight * dense + (1 - weight) * trust * lexical`` (the convex combination
    of Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023; with
    the plain scale their theoretical min-max). The fused score lies in [0, 1] and never falls when
    a candidate's lexical or dense score alone rises. No two candidates influence each other except
    through the two maxima.

    Args:
        lexical: BM25 of the candidates, shape (n,), 0.0 where nothing matches.
        dense: cosines of the same candidates, shape (n,), -1.0 where there is no vector.
        weight: share of the dense score, from 0 (lexical only) to 1 (dense only).
        scale: what this query's scores are worth.

    Returns:
        Scores of shape (n,), float64.

    Raises:
        BadInputError: the shapes differ, a score is not finite or below its floor, or the weight
            or a number of the scale is out of its range.
    """
    if not 0.0 <= weight <= 1.0:
        raise BadInputError(
            f"The fusion weight {weight} is outside [0, 1].", hint="Set it to 0.5, the default."
        )
    if not (DENSE_FLOOR <= scale.zero <= 1.0 and 0.0 <= scale.trust <= 1.0):
        raise BadInputError(f"{scale} is out of range: zero is -1 to 1, trust 0 to 1.")
    if lexical.ndim != 1 or lexical.shape != dense.shape:
        raise BadInputError(
            f"Lexical scores of shape {lexical.shape} and dense scores of shape {dense.shape} "
            "are not of one list of candidates."
        )
    if lexical.size == 0:
        return np.zeros(0, dtype=np.float64)
    share = np.float64(weight)
    kept = (1.0 - share) * np.float64(scale.trust)
    fused: Scores = share * stretched(dense, DENSE_FLOOR, scale.zero) + kept * stretched(
        lexical, LEXICAL_FLOOR
    )
    return fused


def fuse_three(
    lexical: Scores,
    dense: Scores,
    sparse: Scores,
    *,
    weight: float = 0.5,
    sparse_weight: float = 0.2,
    scale: Scale = PLAIN,
) -> Scores:
    """Return the fused score of every candidate with learned sparse weights as the third part.

    ``(1 - sparse_weight) * fuse(lexical, dense) + sparse_weight * sparse``, where the sparse scores
    are stretched from 0 to the best of the union, as the other two are. With a ``sparse_weight`` of
    0 it is ``fuse`` to the bit.

    Args:
        lexical: as for ``fuse``.
        dense: as for ``fuse``.
        sparse: products of learned weights, shape (n,), 0.0 where no token meets.
        weight: share of the dense score in the first part.
        sparse_weight: share of the sparse score, from 0 (none) to 1 (nothing else).
        scale: as for ``fuse``.

    Returns:
        Scores of shape (n,), float64.

    Raises:
        BadInputError: as for ``fuse``, and for the sparse scores and their weight alike.
    """
    fused = fuse(lexical, dense, weight=weight, scale=scale)
    if not 0.0 <= sparse_weight <= 1.0:
        raise BadInputError(
            f"The sparse weight {sparse_weight} is outside [0, 1].",
            hint="Set it to 0.2, the default.",
        )
    if sparse.shape != fused.shape:
        raise BadInputError(
            f"Sparse scores of shape {sparse.shape} and {fused.size} fused scores are not of one "
            "list of candidates."
        )
    if fused.size == 0:
        return fused
    share = np.float64(sparse_weight)
    mixed: Scores = (1.0 - share) * fused + share * stretched(sparse, SPARSE_FLOOR)
    return mixed


def stretched(scores: Scores, floor: float, zero: float | None = None) -> Scores:
    """Return the scores mapped so that ``zero`` becomes 0 and the best becomes 1.

    ``zero`` is the floor unless given; what lies below it becomes 0, too. All zeros when no score
    is above it. ``scores`` has shape (n,) with n > 0.

    Raises:
        BadInputError: a score is not finite or below the floor.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all() or values.min() < floor:
        worst = scores[int(np.argmin(np.where(np.isfinite(values), values, -np.inf)))]
        raise BadInputError(
            f"The score {worst} is not a finite number from {floor} up.",
            hint="Complete both scores of every candidate before fusing them.",
        )
    above = np.maximum(values - (floor if zero is None else zero), 0.0)
    best = above.max()
    return above / best if best > 0.0 else np.zeros_like(above)
