"""The sparse index: postings of learned weights, scored in whole numbers.

A passage's score is the dot product of its codes and the query's, times the two scales. The sum is
one of whole numbers, so it is the same in any order, on any machine and however many passages are
scored.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.sparse import SparseVector
from world_core.errors import BadInputError, IndexFailedError
from world_core.indexes.sparse_writer import (
    CODES_FILE,
    PASSAGES_FILE,
    SCALES_FILE,
    STARTS_FILE,
    TOKENS_FILE,
    CodedSparse,
    WeightCodes,
    coded,
)
from world_core.indexes.tables import best, damaged, mapped
from world_core.types import Bitmap, Candidates, Numbers, Scores

QUERY_TOKENS = 4096
"""Tokens of a query that count, its heaviest; so many products of codes fit 32 bits."""


class Postings(NamedTuple):
    """Distinct tokens (t,), the start of each one's list (t + 1,), and all lists one after another.

    A list is ascending passage numbers with a code each: ``passages`` (n,) and ``codes`` (n,).
    """

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]
    passages: NDArray[np.int32]
    codes: WeightCodes

    @classmethod
    def none(cls) -> Self:
        """Return no lists at all."""
        numbers = np.zeros(0, dtype=np.int32)
        return cls(numbers, np.zeros(1, dtype=np.int64), numbers, np.zeros(0, dtype=np.uint8))


class SparseIndex:
    """Finds the passages whose weighted tokens meet the query's; safe under threads.

    Files are mapped, not read, so processes on one machine share their pages.
    """

    def __init__(self, postings: Postings, scales: NDArray[np.float32], bits: int) -> None:
        self._tokens, self._starts, self._passages, self._codes = postings
        self._scales = scales
        self._bits = bits
        self._closed = False

    @classmethod
    def open(cls, folder: Path, *, bits: int = 8) -> Self:
        """Map the five files of a folder and check that they belong together.

        Headers, shapes and offsets are checked; that no byte differs is for the digests of the
        manifest to say.

        Args:
            folder: what ``write_sparse`` wrote into.
            bits: of a query's codes; the manifest's.

        Raises:
            DamagedFileError: a file is missing, cut, of another kind or of another index.
        """
        tokens = mapped(folder / TOKENS_FILE, np.dtype(np.int32), 1)
        starts = mapped(folder / STARTS_FILE, np.dtype(np.int64), 1)
        passages = mapped(folder / PASSAGES_FILE, np.dtype(np.int32), 1)
        codes = mapped(folder / CODES_FILE, np.dtype(np.uint8), 1)
        scales = mapped(folder / SCALES_FILE, np.dtype(np.float32), 1)
        if (tokens[1:] <= tokens[:-1]).any():
            raise damaged(folder / TOKENS_FILE, "has tokens out of order")
        if len(starts) != len(tokens) + 1 or starts[0] != 0 or (starts[1:] <= starts[:-1]).any():
            raise damaged(
                folder / STARTS_FILE, f"does not divide the lists of {len(tokens)} tokens"
            )
        for name, column in ((PASSAGES_FILE, passages), (CODES_FILE, codes)):
            if len(column) != starts[-1]:
                raise damaged(
                    folder / name, f"holds {len(column)} postings, {STARTS_FILE} has {starts[-1]}"
                )
        return cls(Postings(tokens, starts, passages, codes), scales, bits)

    @property
    def count(self) -> int:
        """Number of passages, with or without weights."""
        return len(self._scales)

    def search(self, query: SparseVector, k: int, allowed: Bitmap | None = None) -> Candidates:
        """Return the best k passages with a score above 0, best first, ties by passage number.

        Args:
            query: its weighted tokens.
            k: how many passages at most.
            allowed: one flag a passage of the world, ``None`` for all.

        Raises:
            BadInputError: k or ``allowed`` does not fit this index.
            IndexFailedError: the index is closed.
        """
        asked = self._asked(query)
        if k < 0:
            raise BadInputError(f"k is {k}, not a number of passages.")
        if allowed is not None and len(allowed) != self.count:
            raise BadInputError(
                f"{len(allowed)} flags do not fit the {self.count} passages of the sparse index."
            )
        sums = np.zeros(self.count, dtype=np.int32)
        for code, start, end in self._lists(asked):
            # Ten times as fast as an indexed sum, and only with numbers of a pointer's size.
            units = self._passages[start:end].astype(np.intp)
            np.add.at(sums, units, self._codes[start:end] * code)
        if allowed is not None:
            sums *= allowed
        found = np.flatnonzero(sums != 0)
        return best(found, self._scaled(sums[found], found, asked), k)

    def score(self, query: SparseVector, passages: Numbers) -> Scores:
        """Return the score of exactly these passages, 0.0 where no token meets.

        ``passages`` (n,) in any order, the result (n,) in the same order. For a passage that
        ``search`` lists, the two scores are the same number.

        Raises:
            IndexFailedError: the index is closed.
        """
        asked = self._asked(query)
        sums = np.zeros(len(passages), dtype=np.int32)
        wanted = passages.astype(np.int32)
        for code, start, end in self._lists(asked):
            places = start + np.searchsorted(self._passages[start:end], wanted)
            here = np.flatnonzero(self._passages[np.minimum(places, end - 1)] == wanted)
            sums[here] += self._codes[places[here]] * code
        return self._scaled(sums, passages, asked)

    def close(self) -> None:
        """Release the mapped files; a later search fails."""
        self._closed = True
        self._tokens, self._starts, self._passages, self._codes = Postings.none()
        self._scales = np.zeros(0, dtype=np.float32)

    def _asked(self, query: SparseVector) -> CodedSparse:
        if self._closed:
            raise IndexFailedError("The sparse index is closed.")
        return coded(query, self._bits, QUERY_TOKENS)

    def _lists(self, asked: CodedSparse) -> list[tuple[np.int32, int, int]]:
        """Return code, start and end of the list of each of the query's tokens that has one."""
        if not len(self._tokens):
            return []
        places = np.minimum(np.searchsorted(self._tokens, asked.tokens), len(self._tokens) - 1)
        known = self._tokens[places] == asked.tokens
        return [
            (np.int32(code), int(self._starts[place]), int(self._starts[place + 1]))
            for code, place in zip(asked.codes[known], places[known], strict=True)
        ]

    def _scaled(self, sums: NDArray[np.int32], passages: Numbers, asked: CodedSparse) -> Scores:
        steps = self._scales[passages].astype(np.float64) * np.float64(asked.scale)
        scores: Scores = sums * steps
        return scores
