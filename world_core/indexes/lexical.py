"""The interface of a lexical index and of its writer; engines stand beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from world_core.types import Bitmap, Candidates, LexicalQuery, Numbers, Scores

CONSTANTS: Mapping[str, tuple[float, float]] = {"lucene": (0.9, 0.4), "tantivy": (1.2, 0.75)}
"""k1 and b of each engine where a recipe names none; tantivy has no others."""


class LexicalIndex(Protocol):
    """BM25 over units, safe to call from several threads at once.

    A unit's score is the sum over the query's fields of weight times BM25 of the field's terms
    (k1 and b of the manifest), plus that of its phrases: a phrase scores like a term that stands
    in a unit as often as its terms stand there in a row, and whose idf is the sum of theirs.
    Collection statistics are the world's, not the view's.
    """

    @property
    def engine(self) -> str:
        """Name and version of the engine, as written into the manifest."""
        ...

    @property
    def count(self) -> int:
        """Number of units."""
        ...

    def search(self, query: LexicalQuery, k: int, allowed: Bitmap | None = None) -> Candidates:
        """Return the best k matching units with score > 0, best first, ties by unit number.

        ``allowed`` has shape (count,) and restricts the answer exactly; ``None`` allows all.

        Raises:
            IndexFailedError: the engine failed.
        """
        ...

    def score(self, query: LexicalQuery, units: Numbers) -> Scores:
        """Return the engine's own score of exactly these units, 0.0 where nothing matches.

        ``units`` (n,) in any order, the result (n,) in the same order. For a unit that ``search``
        lists, the two scores are the same number.
        """
        ...

    def holders(self, field: str, terms: Sequence[str]) -> list[int]:
        """Return the number of units that hold each term in the field, 0 in an unknown field.

        Raises:
            IndexFailedError: the engine failed.
        """
        ...

    def close(self) -> None:
        """Release files and memory."""
        ...


class LexicalWriter(Protocol):
    """Writes an index in one go, units in ascending order from 0, into one segment."""

    def __enter__(self) -> Self:
        """Start writing."""
        ...

    def __exit__(self, *exc: object) -> None:
        """Finish and close, or drop everything when an error is passed."""
        ...

    def add(self, fields: Mapping[str, Sequence[str]]) -> None:
        """Add the next unit: the terms of each field, in text order."""
        ...
