"""The interface of an encoder of queries that many callers ask at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from world_core.encoders.base import Encoder
from world_core.types import Vector, Vectors

READY = "ready"
PROBE = "Is the encoder ready?"


@dataclass(frozen=True, slots=True)
class EncoderReport:
    """What an encoder of queries did since it was opened, and how it is.

    Attributes:
        state: "ready", or why it encodes nothing at this moment.
        batches: runs of the model over queries.
        texts: queries in those runs.
        hits: queries whose vector was remembered, or was being computed for another caller.
        misses: queries that had to be computed.
        restarts: processes of the encoder that took the place of one that ended.
    """

    state: str = READY
    batches: int = 0
    texts: int = 0
    hits: int = 0
    misses: int = 0
    restarts: int = 0

    @property
    def is_ready(self) -> bool:
        """True while queries are encoded."""
        return self.state == READY


class QueryEncoder(Encoder, Protocol):
    """An encoder that takes queries one by one, from any thread, and never makes the taker wait."""

    def submit(self, text: str) -> Future[Vector]:
        """Begin to encode a query; the future holds its vector, shape (dim,), read-only.

        A future that is cancelled before its query was begun costs nothing. Its exception is an
        EncoderError, or what the model raised.

        Raises:
            EncoderError: the encoder was closed.
        """
        ...

    def probe(self) -> Future[Vector]:
        """Begin to encode a fixed text anew, as the proof that the model answers."""
        ...

    def report(self) -> EncoderReport:
        """Return the state and the counts."""
        ...

    def close(self) -> None:
        """End what was begun, then release the model."""
        ...


def encode_all(encoder: QueryEncoder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of the texts, shape (n, dim), when the last one is there.

    Raises:
        EncoderError: one of the texts could not be encoded; the others are given up.
    """
    if not texts:
        return np.zeros((0, encoder.dim), dtype=np.float32)
    begun: list[Future[Vector]] = []
    try:
        begun.extend(encoder.submit(text) for text in texts)
        return np.stack([future.result() for future in begun])
    except BaseException:
        for future in begun:
            future.cancel()
        raise
