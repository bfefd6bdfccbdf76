"""Tables of numbers in files, mapped and checked, and the best of a list of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world_core.errors import DamagedFileError
from world_core.types import Candidates, Numbers, Scores


def mapped(path: Path, kind: np.dtype[Any], axes: int) -> NDArray[Any]:
    """Map a file of ``np.save`` as a plain array over the same pages.

    Raises:
        DamagedFileError: it is missing, cut, or of another kind or number of axes.
    """
    try:
        table = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise damaged(path, f"cannot be read ({error})") from error
    if table.dtype != kind or table.ndim != axes:
        raise damaged(path, f"is not a table of {kind} with {axes} axes")
    # Slices of the subclass are slower.
    plain: NDArray[Any] = table.view(np.ndarray)
    return plain


def damaged(path: Path, what: str) -> DamagedFileError:
    """Return the error for a file of an index: ``what`` completes the sentence after its name."""
    return DamagedFileError(f"{path} {what}.", hint="Restore the file or build the world again.")


def best(units: Numbers, scores: Scores, k: int) -> Candidates:
    """Return the best k of units (n,) with their scores (n,), best first, ties by unit number."""
    if 0 < k < len(scores):
        # Everything from the k-th best score up, ties included, is left to sort.
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        units, scores = units[kept], scores[kept]
    order = np.lexsort((units, -scores))[:k]
    return Candidates(units=units[order], scores=scores[order])
