"""The interface of an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

from world_core.types import Vectors


class Encoder(Protocol):
    """Text to vectors of length 1; equal text gives equal bits, whatever it is batched with."""

    @property
    def id(self) -> str:
        """Names model, weights digest, runtime, pooling, prefixes and token limit.

        Two encoders with one id give the same vectors on machines of one CPU family.
        """
        ...

    @property
    def dim(self) -> int:
        """Number of components."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a query, with the model's query prefix.

        Raises:
            EncoderError: the model failed.
        """
        ...

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a passage, with the model's passage prefix."""
        ...


Inner = TypeVar("Inner", bound=Encoder)


class Wrapping(Generic[Inner]):
    """An encoder around another one that does the work; it goes by the other's id."""

    def __init__(self, encoder: Inner) -> None:
        self._encoder = encoder

    @property
    def wrapped(self) -> Inner:
        """The encoder inside."""
        return self._encoder

    @property
    def id(self) -> str:
        """The id of the encoder inside."""
        return self._encoder.id

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._encoder.dim


def innermost(encoder: object) -> object:
    """Return the encoder that does the work, whatever stands around it."""
    while isinstance(encoder, Wrapping):
        encoder = encoder.wrapped
    return encoder


@runtime_checkable
class LengthAware(Protocol):
    """An encoder that runs texts of one length together, and costs least when it can."""

    def query_length(self, text: str) -> int:
        """Return the length of a query as the model sees it, in tokens."""
        ...
