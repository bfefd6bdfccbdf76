"""Lucene's list of documents and scores, read in one step instead of one a number."""

from __future__ import annotations

import re

import numpy as np

from world_core.indexes import clauses as common
from world_core.indexes import jvm
from world_core.indexes.jvm import Java
from world_core.types import Candidates

NUMBER = re.compile(r"=([^ ,\]]+)")
"""A number of the text ``[doc=4 score=1.5 shardIndex=-1, ...]``, three a document."""


class HitReader:
    """Reads arrays of Lucene's hits; safe under threads.

    To cross into Java for each number takes longer than to find them: 200 hits are 400 numbers.
    Java writes a float32 with as many digits as tell it from all others, so nothing is lost.
    """

    def __init__(self) -> None:
        """Get ready; Java must have been booted."""
        self._text = jvm.load("java.util.Arrays").toString

    def __call__(self, score_docs: Java, k: int) -> Candidates:
        """Return the first k hits with a score above 0, in Lucene's order."""
        numbers = NUMBER.findall(str(self._text(score_docs)))
        scores = np.array(list(map(float, numbers[1::3])), dtype=np.float32)
        return common.candidates(list(map(int, numbers[0::3])), scores.tolist(), k)
