"""Combines the lexical and the dense scores of one candidate union into one score.

Both scores must be *completed*: every candidate of either list has its own BM25 and its own
cosine, so a score never depends on where a candidate list was cut.
"""

from __future__ import annotations

import numpy as np

from world_core.errors import BadInputError
from world_core.types import Scores

LEXICAL_FLOOR = 0.0
"""BM25 of a unit in which no term of the query occurs: the least it can be."""

DENSE_FLOOR = -1.0
"""The least a cosine can be; also the score of a passage that has no vector."""

SPARSE_FLOOR = 0.0
"""The least a product of learned weights can be: no token of the query is in the passage."""


def fuse(lexical: Scores, dense: Scores, *, weight: float = 0.5) -> Scores:
    """Return the fused score of every candidate, in the order given; more is better.

    Each score is stretched from its theoretical minimum (BM25 0, cosine -1) to the best of the
    union, then both are mixed: ``weight * dense + (1 - weight) * lexical`` (the convex combination
    of Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023, there
    called theoretical min-max). The fused score lies in [0, 1] and never falls when a
    candidate's lexical or dense score alone rises. No two candidates influence each other
    except through the two maxima.

    Args:
        lexical: BM25 of the candidates, shape (n,), 0.0 where nothing matches.
        dense: cosines of the same candidates, shape (n,), -1.0 where there is no vector.
        weight: share of the dense score, from 0 (lexical only) to 1 (dense only).

    Returns:
        Scores of shape (n,), float64.

    Raises:
        BadInputError: the shapes differ, a score is not finite or below its floor, or the weight
            is outside [0, 1].
    """
    if not 0.0 <= weight <= 1.0:
        raise BadInputError(
            f"The fusion weight {weight} is outside [0, 1].", hint="Set it to 0.5, the default."
        )
    if lexical.ndim != 1 or lexical.shape != dense.shape:
        raise BadInputError(
            f"Lexical scores of shape {lexical.shape} and dense scores of shape {dense.shape} "
            "are not of one list of candidates."
        )
    if lexical.size == 0:
        return np.zeros(0, dtype=np.float64)
    share = np.float64(weight)
    fused: Scores = share * stretched(dense, DENSE_FLOOR) + (1.0 - share) * stretched(
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

    Returns:
        Scores of shape (n,), float64.

    Raises:
        BadInputError: as for ``fuse``, and for the sparse scores and their weight alike.
    """
    fused = fuse(lexical, dense, weight=weight)
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


def stretched(scores: Scores, floor: float) -> Scores:
    """Return the scores mapped so that ``floor`` becomes 0 and the best becomes 1.

    All zeros when no score is above the floor. ``scores`` has shape (n,) with n > 0.

    Raises:
        BadInputError: a score is not finite or below the floor.
    """
    above = np.asarray(scores, dtype=np.float64) - floor
    if not np.isfinite(above).all() or above.min() < 0.0:
        worst = scores[int(np.argmin(np.where(np.isfinite(above), above, -np.inf)))]
        raise BadInputError(
            f"The score {worst} is not a finite number from {floor} up.",
            hint="Complete both scores of every candidate before fusing them.",
        )
    best = above.max()
    return above / best if best > 0.0 else np.zeros_like(above)
