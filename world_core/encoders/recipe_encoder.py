"""What every encoder that is made from a recipe says of itself, and its two ways of encoding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from world_core.encoders.weights import Recipe
from world_core.types import Vectors


class RecipeEncoder(ABC):
    """A model whose id, files and prefixes stand in a recipe; a subclass sets it, and ``_dim``."""

    _recipe: Recipe
    _dim: int

    @property
    def id(self) -> str:
        """Names model, digests of its files, pooling, limit and prefixes (``weights.Recipe``)."""
        return self._recipe.id

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._dim

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of each file of the model by its name; empty for none."""
        return self._recipe.files

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a query, length 1, with the recipe's query prefix.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts, is_query=True)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a passage, length 1, with the recipe's passage prefix.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts, is_query=False)

    @abstractmethod
    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        """Return (n, dim) float32 rows of length 1."""
