"""Hits as Lucene has them against hits as they are read."""

from __future__ import annotations

import jpype
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from world_core.indexes import jvm
from world_core.indexes.lucene_hits import HitReader

pytestmark = pytest.mark.java

SCORES = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.fixture(scope="module")
def read() -> HitReader:
    """Return a reader in a Java that runs."""
    jvm.boot(jvm.LEAST_MB)
    return HitReader()


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), SCORES), max_size=30), st.integers(0, 40))
@example([(0, float(np.float32(1e-30))), (7, float(np.float32(3.4e38)))], 2)
@example([(2, float(np.float32(1.0000001))), (1, 1.0)], 2)
@settings(deadline=None, max_examples=300)
def test_numbers_are_read_as_they_are(
    read: HitReader, hits: list[tuple[int, float]], k: int
) -> None:
    score_doc = jvm.load("org.apache.lucene.search.ScoreDoc")
    array = jpype.JArray(score_doc)([score_doc(unit, score) for unit, score in hits])

    found = read(array, k)

    expected = [(unit, score) for unit, score in hits if score > 0][:k]
    assert list(zip(found.units.tolist(), found.scores.tolist(), strict=True)) == expected
