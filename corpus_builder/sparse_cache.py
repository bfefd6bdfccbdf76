"""Learned sparse weights by the digest of their text, kept between builds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from corpus_builder.vector_cache import TextCache
from world_core.encoders.sparse import SparseVector


class SparseCache(TextCache):
    """The weighted tokens that one sparse encoder gave texts: all tokens, then all weights."""

    def find(self, digests: Sequence[bytes]) -> dict[bytes, SparseVector]:
        """Return the weighted tokens that are known, by digest.

        Raises:
            StageFailedError: the file is damaged.
        """
        return {digest: self._vector(data) for digest, data in self.read(digests).items()}

    def store(self, digests: Iterable[bytes], vectors: Iterable[SparseVector]) -> None:
        """Keep weighted tokens under their digests, all or none.

        Raises:
            StageFailedError: the file is damaged or cannot be written.
        """
        self.write(
            [
                (digest, one.tokens.astype("<i4").tobytes() + one.weights.astype("<f4").tobytes())
                for digest, one in zip(digests, vectors, strict=True)
            ]
        )

    def _vector(self, data: bytes) -> SparseVector:
        count, rest = divmod(len(data), 8)
        tokens = np.frombuffer(data, dtype="<i4", count=count).astype(np.int32)
        weights = np.frombuffer(data[4 * count : 8 * count], dtype="<f4").astype(np.float32)
        ascending = all(one < two for one, two in pairwise([-1, *tokens.tolist()]))
        if rest or not ascending or not (np.isfinite(weights) & (weights > 0.0)).all():
            raise self.damaged("weights in it cannot be")
        return SparseVector(tokens, weights)
