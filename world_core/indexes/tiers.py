"""The FAISS indexes that propose candidates: the only file that touches FAISS.

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
from numpy.typing import NDArray

from world_core.errors import DamagedFileError, IndexFailedError, MissingPartError
from world_core.types import Bitmap, Numbers, Vector, Vectors

KINDS = ("flat", "ivf", "hnsw")
"""All rows scanned, half precision; cells, one byte a component; a graph, half precision."""

FIRST_PROBES = 64  # cells of an IVF index looked into at first
FIRST_BREADTH = 128  # least breadth of a search in an HNSW graph
SEED = 1234  # of the clustering into cells


class Tier:
    """A FAISS index over rows numbered from 0; safe to search from several threads at once."""

    def __init__(self, kind: str, index: Any) -> None:  # noqa: ANN401 - FAISS has no types
        self._kind = kind
        self._index = index

    @property
    def kind(self) -> str:
        """One of ``KINDS``."""
        return self._kind

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of components."""
        return int(self._index.ntotal), int(self._index.d)

    def nearest(
        self, vector: Vector, wanted: int, flags: Bitmap | None, effort: int
    ) -> tuple[NDArray[np.float32], Numbers]:
        """Return FAISS scores and rows, best first; fewer than wanted where it found no more.

        Args:
            vector: the query, shape (dim,).
            wanted: how many rows at most.
            flags: one flag a row, ``None`` for all.
            effort: 1 at first; n looks into n times as many cells, or as much of the graph.

        Raises:
            IndexFailedError: FAISS failed.
        """
        faiss = load_faiss()
        # The number of OpenMP threads is a property of the calling thread, so it is set in each
        # call; one thread, because the callers are the parallelism.
        faiss.omp_set_num_threads(1)
        # One query a call stays below FAISS's threshold for matrix routines, whose rounding
        # depends on the batch.
        query = np.ascontiguousarray(vector[np.newaxis], dtype=np.float32)
        settings: dict[str, object] = {}
        if flags is not None:
            # The selector does not own the bits; the local name keeps them alive for the call.
            bits = np.packbits(flags, bitorder="little")
            settings["sel"] = faiss.IDSelectorBitmap(bits)
        try:
            parameters = self._parameters(faiss, wanted, effort, settings)
            scores, rows = self._index.search(query, wanted, params=parameters)
        except RuntimeError as error:
            raise IndexFailedError(
                f"FAISS failed in a search for {wanted} rows: {error}",
                hint="Check the world with: world-server check WORLD",
            ) from error
        found = rows[0] >= 0  # FAISS fills up a short list with -1
        return scores[0][found], rows[0][found]

    def _parameters(
        self, faiss: ModuleType, wanted: int, effort: int, settings: dict[str, object]
    ) -> object:
        if self._kind == "ivf":
            return faiss.SearchParametersIVF(nprobe=FIRST_PROBES * effort, **settings)
        if self._kind == "hnsw":
            breadth = max(FIRST_BREADTH, wanted) * effort
            return faiss.SearchParametersHNSW(efSearch=breadth, **settings)
        return faiss.SearchParameters(**settings)


def write_tier(path: Path, kind: str, vectors: Vectors) -> None:
    """Write an index of a kind over vectors (n, dim); n may be 0 for "flat" only.

    Equal inputs give equal bytes: it is built on one thread with a fixed seed.

    Raises:
        MissingPartError: FAISS is not installed.
    """
    faiss = load_faiss()
    count, dim = vectors.shape
    with _one_thread(faiss):
        index = _untrained(faiss, kind, count, dim)
        if count:
            dense = np.ascontiguousarray(vectors, dtype=np.float32)
            index.train(dense)
            index.add(dense)
        faiss.write_index(index, str(path))


def read_tier(path: Path) -> Tier:
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
    }
    for kind, shape in kinds.items():
        if isinstance(index, shape) and index.metric_type == faiss.METRIC_INNER_PRODUCT:
            return Tier(kind, index)
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


def _untrained(faiss: ModuleType, kind: str, count: int, dim: int) -> Any:  # noqa: ANN401 - FAISS has no types
    product = faiss.METRIC_INNER_PRODUCT
    half = faiss.ScalarQuantizer.QT_fp16
    if kind == "flat":
        return faiss.IndexScalarQuantizer(dim, half, product)
    if kind == "hnsw":
        return faiss.IndexHNSWSQ(dim, half, 32, product)
    cells = min(int(4 * count**0.5), count)
    byte = faiss.ScalarQuantizer.QT_8bit
    index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(dim), dim, cells, byte, product)
    index.cp.seed = SEED
    index.cp.min_points_per_centroid = 1  # silences a warning on stderr for small indexes
    return index


@contextmanager
def _one_thread(faiss: ModuleType) -> Iterator[None]:
    """Build on one thread: cells and graphs then do not depend on the machine's core count."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
