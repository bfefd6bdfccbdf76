"""The dense index: a tier proposes candidates, integer codes score them.

A tier (``tiers.py``) only decides which rows are looked at. Every score comes from the codes
(``codes.py``), so the same passage has the same score in every call, and the order of an answer
never hangs on how an engine rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from world_core.errors import BadInputError, IndexFailedError
from world_core.indexes import devices
from world_core.indexes.codes import Coded, coded, cosines, digest, quantised
from world_core.indexes.faiss_tiers import FAISS_KINDS, write_tier
from world_core.indexes.row_flags import FlagMemory, RowFlags
from world_core.indexes.tables import best, damaged, mapped
from world_core.indexes.tiers import KINDS, Found, Tier, chosen_kind
from world_core.types import Bitmap, Candidates, Numbers, Scores, Vector, Vectors

INDEX_FILE = "index.faiss"
CODES_FILE = "codes.npy"
SCALES_FILE = "scales.npy"
ROWS_FILE = "rows.npy"

EXACT_LIMIT = 4_000
"""Rows up to which all are scored by their codes and no tier is asked.

Under a view of so many of 50,000 rows both cost the same for 200 candidates.
"""


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
        folder: where the files go; tier "torch" has none of its own.
        vectors: shape (n, dim), rows of length 1; n may be 0.
        rows: passage number of each vector, shape (n,), strictly ascending.
        tier: one of ``tiers.KINDS``, or "auto": flat up to 50,000 rows, ivf up to 5,000,000, then
            ivfpq. An index with too few rows for its tier is flat (``tiers.chosen_kind``).

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
    kind = chosen_kind(tier, count)
    table = quantised(vectors)
    if kind in FAISS_KINDS:
        write_tier(folder / INDEX_FILE, kind, table)
    np.save(folder / CODES_FILE, table.codes, allow_pickle=False)
    np.save(folder / SCALES_FILE, table.scales, allow_pickle=False)
    np.save(folder / ROWS_FILE, rows.astype(np.int64), allow_pickle=False)
    return DenseSummary(kind=kind, dim=dim, rows=count, vectors_digest=digest(*table))


@dataclass(frozen=True, slots=True)
class _Ask:
    """What a search looks for: the best k of the allowed rows, of which there are ``chosen``."""

    k: int
    flags: RowFlags | None
    chosen: int


class DenseIndex:
    """Finds the passages nearest to a vector; safe to call from several threads at once.

    Files are mapped, not read, so processes on one machine share their pages. Processes that
    search must be started by spawn, not by fork (``faiss_tiers.py``).
    """

    def __init__(self, tier: Tier, table: Coded, rows: Numbers) -> None:
        self._tier: Tier | None = tier
        self._table = table
        self._rows = rows
        self._dim = int(table.codes.shape[1])
        self._flags = FlagMemory(rows)

    @classmethod
    def open(cls, folder: Path, *, kind: str = "", device: str = "cpu") -> Self:
        """Map the files of a folder and check that they belong together.

        Headers, shapes and row numbers are checked; that no byte differs is for the digests of
        the manifest to say.

        Args:
            folder: what ``write_dense`` wrote into.
            kind: the tier that the manifest states; "" for any that has a file of its own.
            device: where to search, one of ``devices.DEVICES``.

        Raises:
            DamagedFileError: a file is missing, cut, of another kind or of another index.
            MissingPartError: what the tier or the device needs is not there.
            IndexFailedError: the rows do not fit the device.
        """
        rows = mapped(folder / ROWS_FILE, np.dtype(np.int64), 1)
        codes = mapped(folder / CODES_FILE, np.dtype(np.int8), 2)
        scales = mapped(folder / SCALES_FILE, np.dtype(np.float32), 1)
        for name, column in ((CODES_FILE, codes), (SCALES_FILE, scales)):
            if len(column) != len(rows):
                raise damaged(
                    folder / name, f"holds {len(column)} rows, {ROWS_FILE} has {len(rows)}"
                )
        if not _ascending(rows):
            raise damaged(folder / ROWS_FILE, "has passage numbers out of order")
        table = Coded(codes, scales)
        files = devices.DenseFiles(folder / INDEX_FILE, folder / CODES_FILE, folder / SCALES_FILE)
        tier = devices.open_tier(files, table, kind, device)
        if tier.shape != codes.shape:
            raise damaged(
                folder / INDEX_FILE,
                f"holds {tier.shape} rows and components, {CODES_FILE} has {codes.shape}",
            )
        return cls(tier, table, rows)

    @property
    def dim(self) -> int:
        """Number of components of a vector."""
        return self._dim

    @property
    def rows(self) -> Numbers:
        """Passage number of each row, ascending, shape (n,)."""
        return self._rows

    @property
    def tier(self) -> str:
        """What proposes candidates: a kind of tier, with ``gpu-`` before it on a FAISS GPU."""
        return self._open_tier().kind

    def search(self, vector: Vector, k: int, allowed: Bitmap | None = None) -> Candidates:
        """Return the best k passages by cosine, best first, ties by passage number.

        Fewer only where fewer are allowed: cells and graph are searched more widely until k are
        found. Small sets (4,000 rows) are scored completely. Of larger ones the tier proposes more
        than k, and more again while a row beyond its list could still belong to the best k; so
        tiers that scan all rows give exactly the best k by the codes, on every device.

        Args:
            vector: the query, shape (dim,), length 1.
            k: how many passages at most.
            allowed: one flag a passage of the world, ``None`` for all.

        Raises:
            BadInputError: the vector, k or ``allowed`` does not fit this index.
            IndexFailedError: the engine failed, or the index is closed.
        """
        return self.search_batch(vector[np.newaxis], k, allowed)[0]

    def search_batch(
        self, vectors: Vectors, k: int, allowed: Bitmap | None = None
    ) -> list[Candidates]:
        """Answer several searches in one view, each exactly as :meth:`search` would alone.

        ``vectors`` has shape (b, dim). On a GPU all queries share one pass over the rows.
        """
        tier = self._open_tier()
        if vectors.ndim != 2 or vectors.shape[1] != self._dim:
            raise BadInputError(
                f"A vector of shape {vectors.shape[1:]} does not fit an index of {self._dim} "
                "components."
            )
        if k < 0:
            raise BadInputError(f"k is {k}, not a number of passages.")
        flags = self._flags.of(allowed)
        ask = _Ask(k, flags, len(self._rows) if flags is None else flags.count)
        queries = quantised(vectors)
        if k and ask.chosen > max(EXACT_LIMIT, tier.breadth(k)):
            return self._proposed(tier, queries, ask)
        return [self._exact(_row(queries, place), ask) for place in range(len(vectors))]

    def score(self, vector: Vector, passages: Numbers) -> Scores:
        """Return the cosine of exactly these passages, -1.0 where a passage has no row.

        ``passages`` (n,) in any order, the result (n,) in the same order. For a passage that
        ``search`` lists, the two scores are the same number.

        Raises:
            BadInputError: the vector does not fit this index.
            IndexFailedError: the index is closed.
        """
        self._open_tier()
        if vector.shape != (self._dim,):
            raise BadInputError(
                f"A vector of shape {vector.shape} does not fit an index of {self._dim} components."
            )
        scores = np.full(len(passages), -1.0, dtype=np.float64)
        if not len(self._rows):
            return scores
        places = np.minimum(np.searchsorted(self._rows, passages), len(self._rows) - 1)
        known = self._rows[places] == passages
        scores[known] = cosines(self._table, places[known], coded(vector))
        return scores

    def close(self) -> None:
        """Release the mapped files; a later search fails."""
        if self._tier is not None:
            self._tier.close()
        self._tier = None
        self._rows = np.zeros(0, dtype=np.int64)
        self._table = Coded(np.zeros((0, self._dim), dtype=np.int8), np.zeros(0, dtype=np.float32))
        self._flags = FlagMemory(self._rows)

    def _open_tier(self) -> Tier:
        if self._tier is None:
            raise IndexFailedError("The dense index is closed.")
        return self._tier

    def _exact(self, query: Coded, ask: _Ask) -> Candidates:
        """Return the best k of all allowed rows, each scored by its codes."""
        positions = (
            np.arange(len(self._rows)) if ask.flags is None else np.flatnonzero(ask.flags.flags)
        ).astype(np.int64)
        return best(self._rows[positions], cosines(self._table, positions, query), ask.k)

    def _proposed(self, tier: Tier, queries: Coded, ask: _Ask) -> list[Candidates]:
        """Return the best k for each query among rows that the tier proposes.

        All queries are asked at once; one whose list proves too short is asked again by itself.
        """
        first = tier.nearest(queries, tier.breadth(ask.k), ask.flags, 1)
        return [
            self._completed(tier, _row(queries, place), ask, found)
            for place, found in enumerate(first)
        ]

    def _completed(self, tier: Tier, query: Coded, ask: _Ask, found: Found) -> Candidates:
        """Score a list by the codes, and ask for longer ones until no row beyond it can matter.

        The tier's score of a row beyond the list is at most the list's last one, so its cosine is
        at most that plus the tier's margin. Effort grows where the tier found fewer than asked.
        """
        wanted, effort = tier.breadth(ask.k), 1
        while wanted < ask.chosen and effort <= len(self._rows):
            if len(found.rows) < wanted:
                effort *= 4
            else:
                scores = cosines(self._table, found.rows, query)
                worst = np.partition(scores, len(scores) - ask.k)[len(scores) - ask.k]
                if found.scores[-1] + tier.margin < worst:
                    return best(self._rows[found.rows], scores, ask.k)
                wanted *= 4
            if wanted < ask.chosen:
                found = tier.nearest(query, wanted, ask.flags, effort)[0]
        return self._exact(query, ask)


def _row(table: Coded, place: int) -> Coded:
    return Coded(table.codes[place : place + 1], table.scales[place : place + 1])


def _ascending(rows: Numbers) -> bool:
    return not len(rows) or bool(rows[0] >= 0 and (rows[1:] > rows[:-1]).all())
