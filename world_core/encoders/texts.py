"""Text as encoders may see it, and the vectors they must give back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from world_core.errors import EncoderError
from world_core.types import Vectors


def readable(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of the text that every tokenizer accepts.

    NUL becomes a space (native code would end the text there), a pair of half surrogates the
    character it stands for, a lone one U+FFFD.
    """
    cut = text[:limit].replace("\0", " ")
    if cut.isascii():
        return cut
    return cut.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def unit_rows(rows: NDArray[np.floating], encoder: str) -> Vectors:
    """Return the rows (n, dim) stretched to length 1, as float32.

    Each row is worked on alone and in float64, so its bits do not depend on its neighbours.

    Raises:
        EncoderError: a row is zero or not finite; ``encoder`` names the culprit.
    """
    units = np.empty(rows.shape, dtype=np.float32)
    for number, row in enumerate(rows):
        exact = row.astype(np.float64)
        length = np.sqrt(np.sum(exact * exact))
        if not (np.isfinite(length) and length > 0.0):
            raise EncoderError(
                f"The encoder {encoder} gave a vector of length {length} for text {number} of "
                f"{len(rows)}.",
                hint="Check the model's files; they may be damaged.",
            )
        units[number] = exact / length
    return units
