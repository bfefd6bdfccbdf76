"""FAISS on a GPU: flat, cells, and the graph CAGRA where the installed FAISS has it.

GPU indexes take no selector and give at most 2,048 rows, so under a view more rows are asked for
and those that it hides are dropped; what they then lack is found by the codes (``dense.py``).
"""

from __future__ import annotations

from threading import Lock
from types import ModuleType
from typing import Any, Self

import numpy as np

from world_core.errors import IndexFailedError, MissingPartError
from world_core.indexes.codes import Coded
from world_core.indexes.faiss_tiers import BLOCK, PROBES, FaissTier, found_of, load_faiss
from world_core.indexes.row_flags import RowFlags
from world_core.indexes.tiers import HALF_MARGIN, TIE_MARGIN, Found

MOST_ROWS = 2048
"""Rows that a search on a GPU can give."""


class FaissGpuTier:
    """A FAISS index on a GPU; its memory for temporary results is shared, so searches take turns.

    A graph on the CPU becomes a CAGRA graph. Rows have the length 1, so CAGRA's squared distances
    order them as products do.
    """

    def __init__(self, kind: str, index: Any, resources: object, rows: int) -> None:  # noqa: ANN401 - FAISS has no types
        self._kind = kind
        self._index = index
        self._resources = resources  # the index uses it without owning it
        self._rows = rows
        self._lock = Lock()

    @classmethod
    def of(cls, tier: FaissTier, table: Coded, device: int = 0) -> Self:
        """Copy a tier to a GPU.

        Raises:
            MissingPartError: this FAISS has no GPU support or finds no GPU, or lacks CAGRA.
            IndexFailedError: the copy failed, for example for want of memory.
        """
        faiss = load_faiss()
        check_gpu(faiss, device)
        try:
            resources = faiss.StandardGpuResources()
            index = _copied(faiss, resources, tier, table, device)
        except RuntimeError as error:
            raise IndexFailedError(
                f"FAISS cannot bring {tier.shape[0]} rows of tier {tier.kind!r} to GPU {device}: "
                f"{error}",
                hint="Serve with --dense-device cuda (torch) or cpu.",
            ) from error
        return cls(tier.kind, index, resources, tier.shape[0])

    @property
    def kind(self) -> str:
        """The tier it was copied from, with ``gpu-`` before it."""
        return f"gpu-{self._kind}"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of components."""
        return self._rows, int(self._index.d)

    @property
    def margin(self) -> float:
        """Rows and queries both in half precision where all rows are scanned, else ties alone."""
        return 2 * HALF_MARGIN if self._kind == "flat" else TIE_MARGIN

    def breadth(self, k: int) -> int:
        """Return how many rows to ask for so that the best k are nearly always among them."""
        return FaissTier(self._kind, self._index).breadth(k)

    def nearest(
        self, queries: Coded, wanted: int, flags: RowFlags | None, effort: int
    ) -> list[Found]:
        """Return FAISS scores and rows for each query; see :class:`~.tiers.Tier`.

        Raises:
            IndexFailedError: FAISS failed.
        """
        faiss = load_faiss()
        asked = over_fetched(wanted, self._rows, flags)
        try:
            with self._lock:
                vectors = queries.vectors(0, len(queries.codes))
                parameters = self._parameters(faiss, effort)
                scores, rows = self._index.search(vectors, asked, params=parameters)
        except RuntimeError as error:
            raise IndexFailedError(
                f"FAISS failed on the GPU in a search for {asked} rows: {error}",
                hint="Serve with --dense-device cuda (torch) or cpu.",
            ) from error
        if self._kind == "hnsw":
            scores = 1.0 - scores / 2.0  # of vectors of length 1
        return [
            visible(found_of(scores[place : place + 1], rows[place : place + 1]), wanted, flags)
            for place in range(len(rows))
        ]

    def close(self) -> None:
        """Release the memory of the device; a later search fails."""
        with self._lock:
            self._index.reset()

    def _parameters(self, faiss: ModuleType, effort: int) -> object:
        if self._kind in PROBES:
            return faiss.SearchParametersIVF(nprobe=PROBES[self._kind] * effort)
        return None


def check_gpu(faiss: ModuleType, device: int = 0) -> None:
    """Refuse a FAISS that cannot use this GPU.

    Asked for by name and number, because without a GPU the calls of FAISS do not fail.

    Raises:
        MissingPartError: this FAISS has no GPU support, or there is no such GPU.
    """
    if not hasattr(faiss, "StandardGpuResources"):
        raise MissingPartError(
            f"The installed FAISS {faiss.__version__} has no GPU support.",
            hint="pip uninstall faiss-cpu && pip install 'searchworld[gpu]', or serve with "
            "--dense-device cuda (torch).",
        )
    count = faiss.get_num_gpus()
    if device >= count:
        raise MissingPartError(
            f"FAISS finds {count} GPUs, so there is no GPU {device}.",
            hint="Serve with --dense-device cpu.",
        )


def over_fetched(wanted: int, rows: int, flags: RowFlags | None) -> int:
    """Return how many rows to ask for so that about ``wanted`` of them are allowed.

    A quarter more than the view's share says, because what it hides may lie near the query.
    """
    if flags is None:
        return min(wanted, rows, MOST_ROWS)
    share = max(flags.count, 1) / rows
    return min(int(wanted / share * 1.25) + 1, rows, MOST_ROWS)


def visible(found: Found, wanted: int, flags: RowFlags | None) -> Found:
    """Return the first ``wanted`` of the rows found that are allowed."""
    if flags is not None:
        kept = flags.flags[found.rows]
        found = Found(found.scores[kept], found.rows[kept])
    return Found(found.scores[:wanted], found.rows[:wanted])


def _copied(
    faiss: ModuleType, resources: object, tier: FaissTier, table: Coded, device: int
) -> Any:  # noqa: ANN401 - FAISS has no types
    if tier.kind in PROBES:
        options = faiss.GpuClonerOptions()
        options.useFloat16 = True
        return faiss.index_cpu_to_gpu(resources, device, tier.index, options)
    dim = tier.shape[1]
    if tier.kind == "flat":
        config = faiss.GpuIndexFlatConfig()
        config.device = device
        config.useFloat16 = True
        index = faiss.GpuIndexFlatIP(resources, dim, config)
        for start in range(0, len(table.codes), BLOCK):
            index.add(table.vectors(start, start + BLOCK))
        return index
    if not hasattr(faiss, "GpuIndexCagra"):
        raise MissingPartError(
            f"The installed FAISS {faiss.__version__} has no CAGRA.",
            hint="Install faiss-gpu-cuvs, or serve with --dense-device cuda (torch).",
        )
    graph = faiss.GpuIndexCagraConfig()
    graph.device = device
    index = faiss.GpuIndexCagra(resources, dim, faiss.METRIC_L2, graph)
    index.train(np.ascontiguousarray(table.vectors(0, len(table.codes))))
    return index
