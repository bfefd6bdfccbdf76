from __future__ import annotations

import dataclasses
import sqlite3
from typing import TYPE_CHECKING

import pytest

from world_core import page_file
from world_core.page_queries import PageQueries
from world_core.page_tables import page_tables

if TYPE_CHECKING:
    from tests.world_core.conftest import Place, Sample

VALUES = {"id": "aa", "page": 1, "version": 1, "numbers": [1, 2], "low": 0, "high": 16}
NAMES = [field.name for field in dataclasses.fields(PageQueries)]


@pytest.mark.parametrize("name", NAMES)
def test_no_query_reads_or_sorts_a_whole_table(
    sqlite_place: Place, sample: Sample, name: str
) -> None:
    sqlite_place.fill(*sample).close()
    text, names = page_file._words(
        getattr(PageQueries.of(page_tables()), name), VALUES, 2 if name == "metas" else -1
    )
    given = [1, 2] if name == "metas" else [VALUES[value] for value in names]
    with sqlite3.connect(str(sqlite_place.where)) as connection:
        steps = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", given)]
    connection.close()
    scans = [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step]
    # The summary is seven rows, always read whole.
    assert bool(scans) is (name == "summary"), steps
