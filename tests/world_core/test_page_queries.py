from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from world_core.page_database import PageDatabase
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
    engine = PageDatabase.of(sqlite_place.where).reader(1, 1.0)
    asked: list[tuple[str, tuple[object, ...]]] = []
    sa.event.listen(
        engine, "before_cursor_execute", lambda *event: asked.append((event[2], event[3]))
    )
    with engine.connect() as connection:
        connection.execute(getattr(PageQueries.of(page_tables()), name), VALUES).all()
        [(statement, values)] = asked
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    engine.dispose()
    steps = [str(row[3]) for row in plan]
    scans = [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step]
    # The summary is seven rows, always read whole.
    assert bool(scans) is (name == "summary"), steps
