"""A deterministic reranker without a model: the share of the query's words that a passage holds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Self

from world_core.encoders.arguments import Settings, only
from world_core.encoders.weights import Recipe
from world_core.types import Numbers, as_numbers

KIND = "tiny"
STEPS = 1000
_WORD = re.compile(r"\w+")


class TinyReranker:
    """Scores 0 to 1,000: the thousandths of the query's distinct words that stand in a passage."""

    def __init__(self) -> None:
        self._recipe = Recipe(
            kind=f"{KIND}-reranker", model="words-1", files={}, pooling="share", limit=f"{STEPS}"
        )

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:  # noqa: ARG003 - the loaders' common signature
        """Make one; it has no arguments.

        Raises:
            BadInputError: there is one.
        """
        only(f"{KIND} (reranker)", arguments, ())
        return cls()

    @property
    def id(self) -> str:
        """Names the algorithm and its version."""
        return self._recipe.id

    def score(self, query: str, passages: Sequence[str]) -> Numbers:
        """Return the thousandths of the query's words in each passage, shape (n,) int64."""
        asked = _words(query)
        shares = [
            len(asked & _words(passage)) * STEPS // max(1, len(asked)) for passage in passages
        ]
        return as_numbers(shares)

    def files(self) -> Mapping[str, str]:
        """Return no files: there is no model."""
        return self._recipe.files


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
