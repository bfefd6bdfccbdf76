"""Integer codes of vectors, whose dot product is the same number on every device and batch.

A floating-point dot product depends on the order of its additions, hence on the batch, the thread
count and the processor. A sum of integers does not.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world_core.errors import BadInputError
from world_core.types import Numbers, Scores, Vector, Vectors

Codes = NDArray[np.int8]
CodeScales = NDArray[np.float32]

CODE_LIMIT = 127
BLOCK = 4096
"""Rows worked on at a time, which bounds the memory of any call."""

LENGTH_TOLERANCE = 1e-3
"""How far the length of a vector may be from 1."""


class Coded(NamedTuple):
    """Rows of codes (n, dim) and their scales (n,), which give every row the length 1."""

    codes: Codes
    scales: CodeScales

    def vectors(self, start: int, stop: int) -> Vectors:
        """Return the code vectors of the rows from start to stop, shape (stop - start, dim).

        The cosine that a world states of two rows is that of these vectors.
        """
        scales = self.scales[start:stop, np.newaxis]
        return np.asarray(self.codes[start:stop] * scales, dtype=np.float32)


def quantised(vectors: Vectors) -> Coded:
    """Return int8 codes (n, dim) and scales (n,) of vectors (n, dim) of length 1.

    A row's components are divided by their largest magnitude, multiplied by 127 and rounded half to
    even. Its scale is the number that gives the codes length 1 again, so that
    ``codes * scale`` is the vector up to rounding, and the product of two rows and their scales is
    the cosine of the two code vectors, never beyond [-1, 1] by more than float32 rounding.

    Raises:
        BadInputError: a component is not finite or a row is not of length 1.
    """
    if vectors.ndim != 2:
        raise BadInputError(f"Vectors of shape {vectors.shape} are not a table of rows.")
    codes = np.empty(vectors.shape, dtype=np.int8)
    scales = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), BLOCK):
        block = np.asarray(vectors[start : start + BLOCK], dtype=np.float64)
        lengths = np.sqrt((block * block).sum(axis=1))
        wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= LENGTH_TOLERANCE))
        if wrong.size:
            raise BadInputError(
                f"Vector {start + wrong[0]} has the length {lengths[wrong[0]]}, not 1.",
                hint="Encode the texts again and normalise the vectors.",
            )
        largest = np.abs(block).max(axis=1, keepdims=True)
        rounded = np.rint(block / largest * CODE_LIMIT)
        codes[start : start + BLOCK] = rounded
        scales[start : start + BLOCK] = 1.0 / np.sqrt((rounded * rounded).sum(axis=1))
    return Coded(codes, scales)


def dots(codes: Codes, positions: Numbers, query: NDArray[np.int8]) -> Scores:
    """Return the exact integer dot products of some rows of (n, dim) codes with the query (dim,).

    Whole numbers of 32 bits hold every sum up to 133,000 components.
    """
    sums = np.empty(len(positions), dtype=np.float64)
    for start in range(0, len(positions), BLOCK):
        some = codes[positions[start : start + BLOCK]]
        # Not by matrix routines: on a busy machine their threads wait for each other, which made
        # 2,000 rows cost 20 ms instead of 0.4.
        sums[start : start + BLOCK] = np.einsum("ij,j->i", some, query, dtype=np.int32)
    return sums


def cosines(table: Coded, positions: Numbers, query: Coded) -> Scores:
    """Return the cosines of the code vectors of some rows with that of the query, in [-1, 1].

    ``positions`` (m,) are rows of the table in any order, ``query`` is one row; the result (m,) is
    in the same order. A row's cosine has the same bits however many rows are asked, on any thread
    count.
    """
    factors = table.scales[positions].astype(np.float64) * np.float64(query.scales[0])
    sums = dots(table.codes, positions, query.codes[0])
    clipped: Scores = np.clip(sums * factors, -1.0, 1.0)
    return clipped


def coded(vector: Vector) -> Coded:
    """Return a vector (dim,) of length 1 as one row of codes.

    Raises:
        BadInputError: it is not finite or not of length 1.
    """
    return quantised(vector[np.newaxis])


def digest(codes: Codes, scales: CodeScales) -> str:
    """Return the sha256, in hex, over all codes row by row and then all scales (little-endian)."""
    total = hashlib.sha256()
    for start in range(0, len(codes), BLOCK):
        total.update(np.ascontiguousarray(codes[start : start + BLOCK]).tobytes())
    total.update(scales.astype("<f4").tobytes())
    return total.hexdigest()
