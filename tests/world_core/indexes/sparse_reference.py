"""The sparse index in plain Python, one number at a time: what the real one must equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from world_core.encoders.sparse import SparseVector


def vector(weights: Mapping[int, float]) -> SparseVector:
    """Return the weights as an encoder gives them."""
    return SparseVector.of(dict(weights), "test")


def reference_codes(
    one: SparseVector, bits: int, top: int = 0
) -> tuple[dict[int, int], np.float32]:
    """Return the codes of a text by token, and the weight of one step."""
    pairs = list(zip(one.tokens.tolist(), one.weights.tolist(), strict=True))
    if top:
        pairs = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:top]
    if not pairs:
        return {}, np.float32(0)
    largest = max(weight for _, weight in pairs)
    most = 2**bits - 1
    codes = {token: round(weight / largest * most) for token, weight in pairs}
    return {token: code for token, code in codes.items() if code}, np.float32(largest / most)


def reference_scores(
    passages: Sequence[SparseVector], query: SparseVector, *, bits: int, top: int = 0
) -> list[float]:
    """Return the score of every passage."""
    asked, step = reference_codes(query, bits)
    scores = []
    for one in passages:
        codes, scale = reference_codes(one, bits, top)
        total = sum(code * codes.get(token, 0) for token, code in asked.items())
        scores.append(total * (float(scale) * float(step)))
    return scores
