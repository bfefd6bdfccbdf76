from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from world_core.columns import UNKNOWN, Columns


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.data())
def test_the_versions_of_pages_are_their_runs(counts: list[int], data: st.DataObject) -> None:
    pages = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    count = len(pages)
    columns = Columns(
        version_page=pages,
        valid_from=np.zeros(count, np.int64),
        valid_to=np.ones(count, np.int64),
        published=np.full(count, UNKNOWN),
        language=np.zeros(count, np.int16),
        host=np.zeros(count, np.int32),
        group=np.zeros(count, np.int32),
        passage_version=np.zeros(0, np.int32),
        hosts=("a.example",),
    )
    asked = data.draw(st.lists(st.integers(0, len(counts) - 1), max_size=8))

    first, end = columns.versions_of(np.array(asked, dtype=np.int64))

    for page, start, stop in zip(asked, first, end, strict=True):
        assert np.flatnonzero(pages == page).tolist() == list(range(start, stop))
