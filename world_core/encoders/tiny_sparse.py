"""A deterministic sparse encoder without a model: hashed words, weighed by how often they occur.

It needs nothing installed, so tests and first trials use it.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

from world_core.encoders.arguments import Settings, number, only
from world_core.encoders.sparse import SparseVector
from world_core.encoders.texts import readable
from world_core.encoders.weights import Recipe

KIND = "tiny"
LIMIT = 8192  # characters read of a text
_WORD = re.compile(r"\w+")


class TinySparse:
    """Gives each word a token by its hash, and the weight log(1 + count)."""

    def __init__(self, vocabulary: int = 30_000) -> None:
        self._vocabulary = vocabulary
        self._recipe = Recipe(
            kind=f"{KIND}-sparse",
            model=f"words-1-{vocabulary}",
            files={},
            pooling="log-count",
            limit=f"{LIMIT} characters",
        )

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:  # noqa: ARG003 - the loaders' common signature
        """Make one from its arguments: ``vocabulary``, 16 to 1,000,000 (default 30,000).

        Raises:
            BadInputError: an argument is unknown or out of range.
        """
        only(f"{KIND} (sparse)", arguments, ("vocabulary",))
        return cls(number(arguments, "vocabulary", 30_000, least=16, most=1_000_000))

    @property
    def id(self) -> str:
        """Names the algorithm, its version and the number of tokens."""
        return self._recipe.id

    @property
    def vocabulary(self) -> int:
        """Number of tokens there are."""
        return self._vocabulary

    def files(self) -> Mapping[str, str]:
        """Return no files: there is no model."""
        return self._recipe.files

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the weighted tokens of each query."""
        return [self._encode(text) for text in texts]

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the weighted tokens of each passage."""
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> SparseVector:
        clean = unicodedata.normalize("NFKC", readable(text, LIMIT)).casefold()
        counts = Counter(
            zlib.crc32(word.encode()) * 0x9E3779B97F4A7C15 % 2**64 % self._vocabulary
            for word in _WORD.findall(clean)
        )
        return SparseVector.of(
            {token: math.log1p(count) for token, count in counts.items()}, self.id
        )
