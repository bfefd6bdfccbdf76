"""The tiers that FAISS holds, on the CPU and mapped into memory.

FAISS must not be used in a process that was forked after an index was open (its threads do not
survive the fork and the search hangs for ever): start workers by spawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from world_core.errors import DamagedFileError, IndexFailedError, MissingPartError
from world_core.indexes.codes import Coded
from world_core.indexes.row_flags import RowFlags
from world_core.indexes.tiers import HALF_MARGIN, TIE_MARGIN, Found
from world_core.types import Vectors

FAISS_KINDS = ("flat", "ivf", "hnsw", "ivfpq")

PROBES = {"ivf": 256, "ivfpq": 256}
"""Cells looked into at first; with these, `benchmarks/recall.py` finds 99 % of the best ten."""

BREADTH = 256
"""Least breadth of a search in a graph."""

CONSTRUCTION = 200
"""Breadth of the searches that build a graph."""

OVERFETCH = 32
"""Rows asked for beyond k, because codes may order neighbours otherwise than FAISS."""

PRODUCT_FACTOR, PRODUCT_LEAST = 10, 400
"""Rows asked of product codes for each of the best k, and beyond: their order is coarse."""

SEED = 1234  # of the clustering into cells and of the product codes
TRAINING_ROWS = 40
"""Rows that each cell is learnt from."""

ROUNDS = 12  # of learning product codes

BLOCK = 1 << 16  # rows added at a time


class FaissTier:
    """A FAISS index over rows numbered from 0; safe to search from several threads at once."""

    def __init__(self, kind: str, index: Any) -> None:  # noqa: ANN401 - FAISS has no types
        self._kind = kind
        self._index = index

    @property
    def kind(self) -> str:
        """One of ``FAISS_KINDS``."""
        return self._kind

    @property
    def index(self) -> Any:  # noqa: ANN401 - FAISS has no types
        """The FAISS index, to be copied to a GPU."""
        return self._index

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of components."""
        return int(self._index.ntotal), int(self._index.d)

    @property
    def margin(self) -> float:
        """What half precision does to a score where all rows are scanned, else ties alone."""
        return HALF_MARGIN if self._kind == "flat" else TIE_MARGIN

    def breadth(self, k: int) -> int:
        """Return how many rows to ask for so that the best k are nearly always among them."""
        if self._kind == "ivfpq":
            return k * PRODUCT_FACTOR + PRODUCT_LEAST
        return k + OVERFETCH

    def nearest(
        self, queries: Coded, wanted: int, flags: RowFlags | None, effort: int
    ) -> list[Found]:
        """Return FAISS scores and rows for each query; see :class:`~.tiers.Tier`.

        Raises:
            IndexFailedError: FAISS failed.
        """
        faiss = load_faiss()
        # The number of OpenMP threads is a property of the calling thread, so it is set in each
        # call; one thread, because the callers are the parallelism.
        faiss.omp_set_num_threads(1)
        settings: dict[str, object] = {}
        if flags is not None:
            # The selector does not own the bits; ``flags`` keeps them alive for the call.
            settings["sel"] = faiss.IDSelectorBitmap(flags.bits)
        try:
            parameters = self._parameters(faiss, wanted, effort, settings)
            # One query a call stays below FAISS's threshold for matrix routines, whose rounding
            # depends on the batch.
            return [
                found_of(*self._index.search(query[np.newaxis], wanted, params=parameters))
                for query in queries.vectors(0, len(queries.codes))
            ]
        except RuntimeError as error:
            raise IndexFailedError(
                f"FAISS failed in a search for {wanted} rows: {error}",
                hint="Check the world with: world-server check WORLD",
            ) from error

    def close(self) -> None:
        """Let go of the mapped index; a later search fails."""
        self._index = None

    def _parameters(
        self, faiss: ModuleType, wanted: int, effort: int, settings: dict[str, object]
    ) -> object:
        if self._kind in PROBES:
            probes = PROBES[self._kind] * effort
            if self._kind == "ivfpq":
                return faiss.IVFPQSearchParameters(nprobe=probes, **settings)
            return faiss.SearchParametersIVF(nprobe=probes, **settings)
        if self._kind == "hnsw":
            breadth = max(BREADTH, wanted) * effort
            return faiss.SearchParametersHNSW(efSearch=breadth, **settings)
        return faiss.SearchParameters(**settings)


def found_of(scores: Any, rows: Any) -> Found:  # noqa: ANN401 - FAISS has no types
    """Return what FAISS found for a single query, without the -1 it fills a short list up with."""
    kept = rows[0] >= 0
    return Found(scores[0][kept], rows[0][kept])


def write_tier(path: Path, kind: str, table: Coded) -> None:
    """Write an index of a kind over the code vectors; "flat" may have none, "ivfpq" needs 256.

    Equal inputs give equal bytes: it is built on one thread with a fixed seed. Made of the code
    vectors, not of the vectors they stand for, because those are what an answer is scored by.

    Raises:
        MissingPartError: FAISS is not installed.
    """
    faiss = load_faiss()
    count, dim = table.codes.shape
    with _one_thread(faiss):
        index = _untrained(faiss, kind, count, dim)
        if count:
            index.train(_sample(table))
        for start in range(0, count, BLOCK):
            index.add(table.vectors(start, start + BLOCK))
        faiss.write_index(index, str(path))


def read_tier(path: Path) -> FaissTier:
    """Map an index into memory.

    Raises:
        DamagedFileError: the file is missing, cut, or holds an index that is not ours.
        MissingPartError: FAISS is not installed.
    """
    faiss = load_faiss()
    hint = "Restore the file or build the world again."
    if not path.is_file():
        raise DamagedFileError(f"{path} is missing.", hint=hint)
    try:
        # This flag maps the data of every kind. The older IO_FLAG_MMAP starts threads in each
        # search of an IVF index, which costs twenty times the search itself.
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except (RuntimeError, MemoryError) as error:
        raise DamagedFileError(f"{path} cannot be read by FAISS: {error}", hint=hint) from error
    kinds = {
        "flat": faiss.IndexScalarQuantizer,
        "ivf": faiss.IndexIVFScalarQuantizer,
        "hnsw": faiss.IndexHNSWSQ,
        "ivfpq": faiss.IndexIVFPQ,
    }
    for kind, shape in kinds.items():
        if isinstance(index, shape) and index.metric_type == faiss.METRIC_INNER_PRODUCT:
            return FaissTier(kind, index)
    raise DamagedFileError(
        f"{path} holds a {type(index).__name__}, which is not an index of a world.", hint=hint
    )


def load_faiss() -> ModuleType:
    """Import FAISS.

    Raises:
        MissingPartError: it is not installed.
    """
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingPartError(
            "The package faiss is not installed, and a dense index needs it.",
            hint="pip install 'searchworld[cpu]'",
        ) from error
    module: ModuleType = faiss
    return module


def cells_of(count: int) -> int:
    """Return into how many cells so many rows are clustered."""
    return max(1, min(int(4 * count**0.5), count))


def pieces_of(dim: int) -> int:
    """Return into how many pieces of at least eight components a vector is cut, one byte each."""
    return next(pieces for pieces in range(max(1, dim // 8), 0, -1) if dim % pieces == 0)


def _untrained(faiss: ModuleType, kind: str, count: int, dim: int) -> Any:  # noqa: ANN401 - FAISS has no types
    product = faiss.METRIC_INNER_PRODUCT
    half = faiss.ScalarQuantizer.QT_fp16
    if kind == "flat":
        return faiss.IndexScalarQuantizer(dim, half, product)
    if kind == "hnsw":
        graph = faiss.IndexHNSWSQ(dim, half, 32, product)
        graph.hnsw.efConstruction = CONSTRUCTION
        return graph
    cells = cells_of(count)
    if kind == "ivfpq":
        index = faiss.IndexIVFPQ(faiss.IndexFlatIP(dim), dim, cells, pieces_of(dim), 8, product)
        index.pq.cp.seed = SEED
        index.pq.cp.niter = ROUNDS
        index.pq.cp.min_points_per_centroid = 1
    else:
        byte = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(dim), dim, cells, byte, product)
    index.cp.seed = SEED
    index.cp.min_points_per_centroid = 1  # silences a warning on stderr for small indexes
    return index


def _sample(table: Coded) -> Vectors:
    """Return evenly spaced rows to learn cells from, all of them where they are few."""
    count = len(table.codes)
    step = max(1, count // max(TRAINING_ROWS * cells_of(count), 1))
    chosen = Coded(table.codes[::step], table.scales[::step])
    return chosen.vectors(0, count)


@contextmanager
def _one_thread(faiss: ModuleType) -> Iterator[None]:
    """Build on one thread: cells and graphs then do not depend on the machine's core count."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
