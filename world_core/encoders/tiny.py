"""A deterministic encoder without a model: hashed words and pieces of words.

Texts that share words or parts of words are near each other. It needs nothing installed and costs
microseconds, so tests and first trials use it; it knows no synonyms and no other language.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from world_core.encoders.arguments import Settings, number, only
from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.weights import Recipe
from world_core.types import Vectors

KIND = "tiny"
LIMIT = 8192  # characters read of a text
WORD_WEIGHT = 3
PIECE_LENGTHS = (2, 3)
_WORD = re.compile(r"\w+")


class TinyEncoder(RecipeEncoder):
    """Counts hashed features of a text into ``dim`` places with a sign each."""

    def __init__(self, dim: int = 256) -> None:
        self._dim = dim
        self._recipe = Recipe(
            kind=KIND,
            model=f"words-and-pieces-1-{dim}",
            files={},
            pooling="sum",
            limit=f"{LIMIT} characters",
        )

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:  # noqa: ARG003 - the loaders' common signature
        """Make one from its arguments: ``dim``, 8 to 4,096 (default 256).

        Raises:
            BadInputError: an argument is unknown or out of range.
        """
        only(KIND, arguments, ("dim",))
        return cls(number(arguments, "dim", 256, least=8, most=4096))

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:  # noqa: ARG002 - no prefixes
        counts = np.zeros((len(texts), self._dim), dtype=np.float64)
        for row, text in zip(counts, texts, strict=True):
            for feature, weight in _features(readable(text, LIMIT)):
                # CRC-32 alone is linear in its input; the multiplication mixes its bits.
                mixed = zlib.crc32(feature.encode()) * 0x9E3779B97F4A7C15 >> 20
                row[mixed % self._dim] += weight if mixed >> 40 & 1 else -weight
            if not row.any():  # no words at all, or all of them cancelled out
                row[0] = 1.0
        return unit_rows(counts, KIND)


def _features(text: str) -> Iterator[tuple[str, int]]:
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        yield word, WORD_WEIGHT
        edged = f"<{word}>"
        for length in PIECE_LENGTHS:
            for start in range(len(edged) - length + 1):
                yield edged[start : start + length], 1
