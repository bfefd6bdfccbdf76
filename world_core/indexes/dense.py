"""The dense index: FAISS proposes candidates, integer codes score them.

FAISS only decides which rows are looked at. Every score comes from the codes (``codes.py``), so the
same passage has the same score in every call, and the order of an answer never hangs on how FAISS
rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from world_core.errors import BadInputError, DamagedFileError, IndexFailedError
from world_core.indexes.codes import Codes, CodeScales, cosines, digest, quantised
from world_core.indexes.tiers import KINDS, Tier, read_tier, write_tier
from world_core.types import Bitmap, Candidates, Numbers, Scores, Vector, Vectors

INDEX_FILE = "index.faiss"
CODES_FILE = "codes.npy"
SCALES_FILE = "scales.npy"
ROWS_FILE = "rows.npy"

FLAT_LIMIT = 50_000
"""Rows up to which tier "auto" scans all of them; above, it looks into cells only."""

EXACT_LIMIT = 2_000
"""Rows up to which all are scored by their codes and FAISS is not asked."""

OVERFETCH = 32
"""Candidates taken beyond k, because codes may order neighbours otherwise than FAISS."""

TIE_MARGIN = 1e-5
"""FAISS scores nearer than this are one score: its rounding differs between processors."""


@dataclass(frozen=True, slots=True)
class DenseSummary:
    """What a manifest says of a dense index: tier, components, rows, digest of the vectors."""

    kind: str
    dim: int
    rows: int
    vectors_digest: str


def write_dense(
    folder: Path, vectors: Vectors, rows: Numbers, *, tier: str = "auto"
) -> DenseSummary:
    """Write a dense index into an existing folder; equal inputs give equal bytes.

    Args:
        folder: where the four files go.
        vectors: shape (n, dim), rows of length 1; n may be 0.
        rows: passage number of each vector, shape (n,), strictly ascending.
        tier: "flat" (all rows scanned, half precision), "ivf" (cells, one byte a component),
            "hnsw" (graph, half precision) or "auto": flat up to 50,000 rows, else ivf. An index
            without rows is always flat.

    Raises:
        BadInputError: an unknown tier, vectors not of length 1, or rows that do not fit them.
        MissingPartError: FAISS is not installed.
    """
    if tier not in ("auto", *KINDS):
        raise BadInputError(
            f"There is no dense tier {tier!r}.", hint=f"Use one of: auto, {', '.join(KINDS)}."
        )
    if vectors.ndim != 2 or rows.shape != (len(vectors),):
        raise BadInputError(
            f"Rows of shape {rows.shape} do not number vectors of shape {vectors.shape}."
        )
    if not _ascending(rows):
        raise BadInputError("The passage numbers of the rows are not strictly ascending from 0 up.")
    count, dim = vectors.shape
    if tier == "auto":
        tier = "flat" if count <= FLAT_LIMIT else "ivf"
    kind = tier if count else "flat"
    codes, scales = quantised(vectors)
    write_tier(folder / INDEX_FILE, kind, vectors)
    np.save(folder / CODES_FILE, codes, allow_pickle=False)
    np.save(folder / SCALES_FILE, scales, allow_pickle=False)
    np.save(folder / ROWS_FILE, rows.astype(np.int64), allow_pickle=False)
    return DenseSummary(kind=kind, dim=dim, rows=count, vectors_digest=digest(codes, scales))


class DenseIndex:
    """Finds the passages nearest to a vector; safe to call from several threads at once.

    Files are mapped, not read, so processes on one machine share their pages. Processes that
    search must be started by spawn, not by fork (``tiers.py``).
    """

    def __init__(self, tier: Tier, codes: Codes, scales: CodeScales, rows: Numbers) -> None:
        self._tier: Tier | None = tier
        self._codes = codes
        self._scales = scales
        self._rows = rows
        self._dim = int(codes.shape[1])

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Map the four files of a folder and check that they belong together.

        Headers, shapes and row numbers are checked; that no byte differs is for the digests of
        the manifest to say.

        Raises:
            DamagedFileError: a file is missing, cut, of another kind or of another index.
            MissingPartError: FAISS is not installed.
        """
        rows = _mapped(folder / ROWS_FILE, np.dtype(np.int64), 1)
        codes = _mapped(folder / CODES_FILE, np.dtype(np.int8), 2)
        scales = _mapped(folder / SCALES_FILE, np.dtype(np.float32), 1)
        for name, table in ((CODES_FILE, codes), (SCALES_FILE, scales)):
            if len(table) != len(rows):
                raise _damaged(
                    folder / name, f"holds {len(table)} rows, {ROWS_FILE} has {len(rows)}"
                )
        if not _ascending(rows):
            raise _damaged(folder / ROWS_FILE, "has passage numbers out of order")
        tier = read_tier(folder / INDEX_FILE)
        if tier.shape != codes.shape:
            raise _damaged(
                folder / INDEX_FILE,
                f"holds {tier.shape} rows and components, {CODES_FILE} has {codes.shape}",
            )
        return cls(tier, codes, scales, rows)

    @property
    def dim(self) -> int:
        """Number of components of a vector."""
        return self._dim

    @property
    def rows(self) -> Numbers:
        """Passage number of each row, ascending, shape (n,)."""
        return self._rows

    def search(self, vector: Vector, k: int, allowed: Bitmap | None = None) -> Candidates:
        """Return the best k passages by cosine, best first, ties by passage number.

        Fewer only where fewer are allowed: cells and graph are searched more widely until k are
        found. Small sets (2,000 rows) are scored completely; of larger ones FAISS proposes k + 32,
        and more while equal scores reach over the end of its list.

        Args:
            vector: the query, shape (dim,), length 1.
            k: how many passages at most.
            allowed: one flag a passage of the world, ``None`` for all.

        Raises:
            BadInputError: the vector, k or ``allowed`` does not fit this index.
            IndexFailedError: FAISS failed, or the index is closed.
        """
        tier = self._checked(vector)
        if k < 0:
            raise BadInputError(f"k is {k}, not a number of passages.")
        flags = self._row_flags(allowed)
        chosen = len(self._rows) if flags is None else int(np.count_nonzero(flags))
        if chosen <= EXACT_LIMIT:
            positions = self._every(flags)
        else:
            positions = self._proposed(tier, vector, k, flags, chosen)
        scores = cosines(self._codes, self._scales, positions, vector)
        return _best(self._rows[positions], scores, k)

    def score(self, vector: Vector, passages: Numbers) -> Scores:
        """Return the cosine of exactly these passages, -1.0 where a passage has no row.

        ``passages`` (n,) in any order, the result (n,) in the same order. For a passage that
        ``search`` lists, the two scores are the same number.

        Raises:
            BadInputError: the vector does not fit this index.
            IndexFailedError: the index is closed.
        """
        self._checked(vector)
        scores = np.full(len(passages), -1.0, dtype=np.float64)
        if not len(self._rows):
            return scores
        places = np.minimum(np.searchsorted(self._rows, passages), len(self._rows) - 1)
        known = self._rows[places] == passages
        positions = places[known]
        scores[known] = cosines(self._codes, self._scales, positions, vector)
        return scores

    def close(self) -> None:
        """Release the mapped files; a later search fails."""
        self._tier = None
        self._rows = np.zeros(0, dtype=np.int64)
        self._codes = np.zeros((0, self._dim), dtype=np.int8)
        self._scales = np.zeros(0, dtype=np.float32)

    def _checked(self, vector: Vector) -> Tier:
        if self._tier is None:
            raise IndexFailedError("The dense index is closed.")
        if vector.shape != (self._dim,):
            raise BadInputError(
                f"A vector of shape {vector.shape} does not fit an index of {self._dim} components."
            )
        return self._tier

    def _row_flags(self, allowed: Bitmap | None) -> Bitmap | None:
        if allowed is None or not len(self._rows):
            return None
        if len(allowed) <= self._rows[-1]:
            raise BadInputError(
                f"{len(allowed)} flags do not cover passage {self._rows[-1]} of the dense index."
            )
        flags: Bitmap = allowed[self._rows]
        return None if flags.all() else flags

    def _every(self, flags: Bitmap | None) -> Numbers:
        everything: Numbers = (
            np.arange(len(self._rows)) if flags is None else np.flatnonzero(flags)
        ).astype(np.int64)
        return everything

    def _proposed(
        self, tier: Tier, vector: Vector, k: int, flags: Bitmap | None, chosen: int
    ) -> Numbers:
        """Return positions that hold the best k, in whole groups of equal FAISS scores.

        FAISS cuts its list at a length, hence anywhere inside a group of equal scores; the group at
        the end is dropped, and more are asked for while fewer than k stay.
        """
        wanted, effort = k + OVERFETCH, 1
        while wanted < chosen and effort <= len(self._rows):
            scores, positions = tier.nearest(vector, wanted, flags, effort)
            if len(positions) < wanted:
                effort *= 4
                continue
            clear = scores > scores[-1] + TIE_MARGIN
            if np.count_nonzero(clear) >= k:
                complete: Numbers = positions[clear]
                return complete
            wanted *= 4
        return self._every(flags)


def _best(units: Numbers, scores: Scores, k: int) -> Candidates:
    if 0 < k < len(scores):
        # Everything from the k-th best score up, ties included, is left to sort.
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        units, scores = units[kept], scores[kept]
    order = np.lexsort((units, -scores))[:k]
    return Candidates(units=units[order], scores=scores[order])


def _ascending(rows: Numbers) -> bool:
    return not len(rows) or bool(rows[0] >= 0 and (rows[1:] > rows[:-1]).all())


def _mapped(path: Path, kind: np.dtype[Any], axes: int) -> NDArray[Any]:
    try:
        table = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path, f"cannot be read ({error})") from error
    if table.dtype != kind or table.ndim != axes:
        raise _damaged(path, f"is not a table of {kind} with {axes} axes")
    # A plain array over the same pages: slices of the subclass are slower.
    plain: NDArray[Any] = table.view(np.ndarray)
    return plain


def _damaged(path: Path, what: str) -> DamagedFileError:
    return DamagedFileError(f"{path} {what}.", hint="Restore the file or build the world again.")
