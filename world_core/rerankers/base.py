"""The interface of a reranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from world_core.types import Numbers


class Reranker(Protocol):
    """Scores a query and a passage read together; safe to call from several threads at once.

    Scores are whole numbers, so that an order made of them repeats, and the score of a pair never
    depends on the pairs that it is scored with.
    """

    @property
    def id(self) -> str:
        """Names model, weights digest, runtime, token limit and the step of the scores."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> Numbers:
        """Return the score of each passage, shape (n,) int64; more is better.

        Raises:
            RerankerError: the model failed.
        """
        ...

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of each file of the model by its name; empty for none."""
        ...
