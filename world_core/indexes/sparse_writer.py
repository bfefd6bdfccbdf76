"""Writing the sparse index: weights become whole numbers, passages become postings by token."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.sparse import SparseVector, Tokens
from world_core.errors import BadInputError

TOKENS_FILE = "tokens.npy"
STARTS_FILE = "starts.npy"
PASSAGES_FILE = "passages.npy"
CODES_FILE = "codes.npy"
SCALES_FILE = "scales.npy"

MOST_BITS = 8
CHUNK = 20_000
"""Passages worked on at once. All postings are held while writing, five bytes each."""

WeightCodes = NDArray[np.uint8]


class CodedSparse(NamedTuple):
    """A text's tokens (n,), their codes (n,) from 1 up, and the weight that one step stands for."""

    tokens: Tokens
    codes: WeightCodes
    scale: np.float32


@dataclass(frozen=True, slots=True)
class SparseSummary:
    """What a manifest says of a sparse index.

    ``bits`` of a code, ``top`` weights kept a passage (0: all), ``passages`` with a weight,
    ``postings`` in all, and the digest of tokens, postings and scales.
    """

    bits: int
    top: int
    passages: int
    postings: int
    weights_digest: str


def coded(vector: SparseVector, bits: int, top: int = 0) -> CodedSparse:
    """Return a text's weights as whole numbers from 1 to ``2 ** bits - 1``.

    Weights are divided by the text's largest, multiplied by the largest code and rounded half to
    even; what rounds to 0 is left out. With ``top``, only that many of the largest weights are
    kept, ties by token.
    """
    tokens, weights = vector.tokens, vector.weights.astype(np.float64)
    if 0 < top < tokens.size:
        kept = np.sort(np.lexsort((tokens, -weights))[:top])
        tokens, weights = tokens[kept], weights[kept]
    if not tokens.size:
        return CodedSparse(tokens, np.zeros(0, dtype=np.uint8), np.float32(0.0))
    most = 2**bits - 1
    codes = np.rint(weights / weights.max() * most).astype(np.uint8)
    scale = np.float32(weights.max() / most)
    return CodedSparse(tokens[codes > 0], codes[codes > 0], scale)


def write_sparse(
    folder: Path, vectors: Iterable[SparseVector], *, bits: int = 8, top: int = 0
) -> SparseSummary:
    """Write a sparse index into an existing folder; equal inputs give equal bytes.

    Args:
        folder: where the five files go.
        vectors: the weighted tokens of every passage from 0 on; none for one that is not indexed.
        bits: of a code, 2 to 8.
        top: weights kept a passage, 0 for all.

    Raises:
        BadInputError: ``bits`` or ``top`` is out of range.
    """
    if not 2 <= bits <= MOST_BITS or top < 0:
        raise BadInputError(
            f"Sparse weights cannot be kept with {bits} bits and the top {top}.",
            hint="Give 2 to 8 bits, and 0 or more weights a passage.",
        )
    chunks = list(_chunks(vectors, bits, top))
    counted = np.unique(_joined([chunk.tokens for chunk in chunks], np.int32), return_counts=True)
    tokens, starts = counted[0], np.concatenate(([0], np.cumsum(counted[1]))).astype(np.int64)
    scales = _joined([chunk.scales for chunk in chunks], np.float32)
    passages, codes = _postings(folder, chunks, tokens, starts)
    np.save(folder / TOKENS_FILE, tokens, allow_pickle=False)
    np.save(folder / STARTS_FILE, starts, allow_pickle=False)
    np.save(folder / SCALES_FILE, scales, allow_pickle=False)
    return SparseSummary(
        bits=bits,
        top=top,
        passages=int(np.count_nonzero(scales)),
        postings=int(starts[-1]),
        weights_digest=digest(tokens, starts, passages, codes, scales),
    )


def digest(*tables: NDArray[Any]) -> str:
    """Return the sha256, in hex, over the bytes of the tables in the order given."""
    total = hashlib.sha256()
    for table in tables:
        total.update(np.ascontiguousarray(table).data)
    return total.hexdigest()


class _Chunk(NamedTuple):
    """Some passages one after another: the scale and number of tokens of each, then all tokens."""

    scales: NDArray[np.float32]
    sizes: NDArray[np.int64]
    tokens: Tokens
    codes: WeightCodes


def _chunks(vectors: Iterable[SparseVector], bits: int, top: int) -> Iterator[_Chunk]:
    ahead = iter(vectors)
    while rows := [coded(vector, bits, top) for vector in itertools.islice(ahead, CHUNK)]:
        yield _Chunk(
            np.array([row.scale for row in rows], dtype=np.float32),
            np.array([row.tokens.size for row in rows], dtype=np.int64),
            np.concatenate([row.tokens for row in rows]),
            np.concatenate([row.codes for row in rows]),
        )


def _joined(parts: list[NDArray[Any]], kind: type[np.number[Any]]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *parts])


def _postings(
    folder: Path, chunks: list[_Chunk], tokens: Tokens, starts: NDArray[np.int64]
) -> tuple[NDArray[np.int32], WeightCodes]:
    """Write the postings token by token, passages ascending, and return them mapped."""
    passages = _table(folder / PASSAGES_FILE, np.dtype(np.int32), int(starts[-1]))
    codes = _table(folder / CODES_FILE, np.dtype(np.uint8), int(starts[-1]))
    next_free = starts[:-1].copy()
    first = 0
    for chunk in chunks:
        numbers = np.arange(first, first + chunk.sizes.size, dtype=np.int32)
        first += chunk.sizes.size
        lists = np.searchsorted(tokens, chunk.tokens)
        order = np.argsort(lists, kind="stable")
        lists = lists[order]
        here, begin, sizes = np.unique(lists, return_index=True, return_counts=True)
        places = next_free[lists] + np.arange(lists.size) - np.repeat(begin, sizes)
        passages[places] = np.repeat(numbers, chunk.sizes)[order]
        codes[places] = chunk.codes[order]
        next_free[here] += sizes
    return passages, codes


def _table(path: Path, kind: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return an array that is a file; an empty one cannot be mapped."""
    if not count:
        empty = np.zeros(0, dtype=kind)
        np.save(path, empty, allow_pickle=False)
        return empty
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=(count,))
