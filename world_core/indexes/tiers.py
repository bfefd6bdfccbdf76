"""The interface of a tier: what proposes rows near a vector; engines stand beside it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from world_core.indexes.codes import Coded
from world_core.indexes.row_flags import RowFlags
from world_core.types import Numbers

KINDS = ("flat", "ivf", "hnsw", "ivfpq", "torch")
"""Tiers a recipe may name.

``flat``: FAISS scans all rows, half precision. ``ivf``: FAISS looks into cells, one byte a
component. ``hnsw``: FAISS walks a graph, half precision. ``ivfpq``: FAISS looks into cells, one
byte for eight components. ``torch``: torch scans all rows of the codes, on CPU or GPU.
"""

FLAT_LIMIT = 50_000
"""Rows up to which tier "auto" scans all of them."""

CELLS_LIMIT = 5_000_000
"""Rows up to which tier "auto" keeps one byte a component in cells; above, product codes."""

TIE_MARGIN = 1e-5
"""Scores nearer than this are one score: the rounding of 32 bits differs between processors."""

HALF_MARGIN = 5.5e-4
"""Bound of what half precision does to the product of a row and a query, both of length 1.

Each component is off by at most 2**-11 of itself (or 2**-25 where it is tiny), hence the product by
at most 2**-11 of the sum of the components' products, which is at most 1.
"""


class Found(NamedTuple):
    """Rows that a tier proposes for one query, best first, and its own scores of them."""

    scores: NDArray[np.float32]
    rows: Numbers


class Tier(Protocol):
    """Proposes rows for queries; safe to ask from several threads at once.

    Rows are numbered from 0. What it proposes is scored anew by the codes, so its own scores only
    decide how far its list is trusted.
    """

    @property
    def kind(self) -> str:
        """One of ``KINDS``, or a GPU form of one."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of components."""
        ...

    @property
    def margin(self) -> float:
        """How far a score may be from the cosine of the codes, as far as a list is cut by it."""
        ...

    def breadth(self, k: int) -> int:
        """Return how many rows to ask for so that the best k are nearly always among them."""
        ...

    def nearest(
        self, queries: Coded, wanted: int, flags: RowFlags | None, effort: int
    ) -> list[Found]:
        """Return the rows found for each query; fewer than wanted where it found no more.

        Args:
            queries: codes (b, dim) and scales (b,); each query is answered as if it were alone.
            wanted: how many rows at most.
            flags: the rows allowed, ``None`` for all.
            effort: 1 at first; n looks n times as widely, which tiers that scan all rows ignore.

        Raises:
            IndexFailedError: the engine failed.
        """
        ...

    def close(self) -> None:
        """Release memory."""
        ...


def automatic(rows: int) -> str:
    """Return the tier that "auto" stands for with so many rows."""
    if rows <= FLAT_LIMIT:
        return "flat"
    return "ivf" if rows <= CELLS_LIMIT else "ivfpq"


def chosen_kind(tier: str, rows: int) -> str:
    """Return the tier that an index of so many rows gets: the one asked for, if it can be learnt.

    It is flat where there are too few rows to learn from: one for cells and graph, 256 for product
    codes.
    """
    kind = automatic(rows) if tier == "auto" else tier
    return kind if rows >= (256 if kind == "ivfpq" else 1) else "flat"
