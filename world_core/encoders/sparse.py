"""The interface of a learned sparse encoder: text to weighted tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from world_core.errors import EncoderError

Tokens = NDArray[np.int32]
Weights = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """The tokens of a text with a weight each.

    ``tokens`` (n,) int32, strictly ascending from 0 up; ``weights`` (n,) float32, above 0. A text
    without a token that counts has n = 0.
    """

    tokens: Tokens
    weights: Weights

    @classmethod
    def of(cls, weights: Mapping[int, float], encoder: str) -> Self:
        """Make one of weights by token; those of 0 are left out.

        Raises:
            EncoderError: a weight is negative or not finite, or a token is below 0; ``encoder``
                names the culprit.
        """
        kept = sorted(token for token, weight in weights.items() if weight != 0.0)
        tokens = np.array(kept, dtype=np.int32)
        values = np.array([weights[token] for token in kept], dtype=np.float32)
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)) | (tokens < 0))
        if wrong.size:
            raise EncoderError(
                f"The encoder {encoder} gave token {tokens[wrong[0]]} the weight "
                f"{values[wrong[0]]}.",
                hint="Check the model's files; they may be damaged.",
            )
        # A weight too small for float32 is one of 0.
        return cls(tokens[values > 0.0], values[values > 0.0])


class SparseEncoder(Protocol):
    """Text to weighted tokens; equal text gives equal bits, whatever it is encoded with."""

    @property
    def id(self) -> str:
        """Names model, weights digest, runtime and token limit."""
        ...

    @property
    def vocabulary(self) -> int:
        """Number of tokens there are; a token is below it."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the weighted tokens of each query.

        Raises:
            EncoderError: the model failed.
        """
        ...

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the weighted tokens of each passage.

        Raises:
            EncoderError: the model failed.
        """
        ...

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of each file of the model by its name; empty for none."""
        ...
