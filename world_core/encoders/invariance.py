"""The proof that an encoder's vectors do not depend on what they were computed with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from world_core.encoders.base import Encoder, Wrapping
from world_core.errors import EncoderError
from world_core.types import Vectors

_LOG = logging.getLogger(__name__)

PROBES = (
    "",
    "   ",
    "apt",
    "how do I list open files",
    "The quick brown fox jumps over the lazy dog.",
    "Wie installiere ich ein Paket ohne Netz?",
    "¿Cuál es la capital del país más poblado?",
    "長江是亞洲最長的河流,全長約六千三百公里。",
    "日本の首都はどこですか",
    "أين يقع أعلى جبل في العالم؟",
    "A sentence of middling length that says nothing in particular, but goes on for a while.",
    "In the beginning there was a file, and the file had no name, and nobody could open it. " * 4,
)
"""Texts of several languages and lengths, among them some without a word."""

TWINS = tuple(f"which {word} is number {digit}" for digit in range(4) for word in ("dog", "car"))
"""Queries of one length in most models, so that they meet in one batch."""

BATCHES = (2, 5, 12)
ORDER = (7, 2, 11, 0, 5, 9, 1, 10, 4, 8, 3, 6)
"""A fixed shuffle of the probes."""


def check_invariance(encoder: Encoder) -> None:
    """Encode fixed texts alone, in batches and shuffled, and compare the bits.

    Raises:
        EncoderError: two runs differ, a vector is not of length 1, or the encoder failed.
    """
    _check_passages(encoder)
    check_queries(encoder)


def check_queries(encoder: Encoder) -> None:
    """Make the check for queries alone, as one who encodes nothing else needs it.

    Raises:
        EncoderError: see :func:`check_invariance`.
    """
    alone = _in_batches(encoder.encode_queries, PROBES, 1)
    _check_table(encoder, alone)
    _compare(encoder, alone, encoder.encode_queries(PROBES), "queries in a batch of 12")
    twins = _in_batches(encoder.encode_queries, TWINS, 1)
    for batch in (2, 3, len(TWINS)):
        together = _in_batches(encoder.encode_queries, TWINS, batch)
        _compare(encoder, twins, together, f"queries of one length in batches of {batch}")


def repeatable(encoder: Encoder, *, check: Callable[[Encoder], None] = check_invariance) -> Encoder:
    """Return the encoder itself if it passes the check, else the same behind ``Invariant``.

    The second case is logged once as a warning, with what differed.
    """
    try:
        check(encoder)
    except EncoderError as error:
        _LOG.warning("%s Texts are encoded one at a time.", error.sentence)
        return Invariant(encoder)
    return encoder


class Invariant(Wrapping[Encoder]):
    """Encodes one text at a time, for an encoder whose vectors depend on their batch.

    The id is the encoder's own: an encoder that passes the check gives the same vectors.
    """

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, each query encoded alone."""
        return self._alone(self._encoder.encode_queries, texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, each passage encoded alone."""
        return self._alone(self._encoder.encode_passages, texts)

    def _alone(self, encode: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return _in_batches(encode, texts, 1)


def _check_passages(encoder: Encoder) -> None:
    alone = _in_batches(encoder.encode_passages, PROBES, 1)
    _check_table(encoder, alone)
    for batch in BATCHES:
        together = _in_batches(encoder.encode_passages, PROBES, batch)
        _compare(encoder, alone, together, f"passages in batches of {batch}")
    shuffled = encoder.encode_passages([PROBES[number] for number in ORDER])
    _compare(encoder, alone[list(ORDER)], shuffled, "passages in another order")


def _check_table(encoder: Encoder, alone: Vectors) -> None:
    if alone.shape != (len(PROBES), encoder.dim) or alone.dtype != np.float32:
        raise EncoderError(
            f"The encoder {encoder.id} gives a table of {alone.shape} {alone.dtype} for "
            f"{len(PROBES)} texts and {encoder.dim} components."
        )
    lengths = np.linalg.norm(alone.astype(np.float64), axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) < 1e-5))
    if wrong.size:
        raise EncoderError(
            f"The encoder {encoder.id} gives a vector of length {lengths[wrong[0]]} "
            f"for {PROBES[wrong[0]]!r}."
        )


def _in_batches(
    encode: Callable[[Sequence[str]], Vectors], texts: Sequence[str], batch: int
) -> Vectors:
    parts = [encode(texts[start : start + batch]) for start in range(0, len(texts), batch)]
    return np.concatenate(parts)


def _compare(encoder: Encoder, alone: Vectors, other: Vectors, how: str) -> None:
    # Bytes are compared, not numbers, which would hold 0.0 and -0.0 to be the same.
    different = sum(a.tobytes() != b.tobytes() for a, b in zip(alone, other, strict=True))
    if different:
        raise EncoderError(
            f"The encoder {encoder.id} gives {different} of {len(alone)} texts other vectors "
            f"alone than as {how}; the largest difference is {np.abs(alone - other).max()}.",
            hint="Wrap it in world_core.encoders.invariance.Invariant.",
        )
