from __future__ import annotations

import itertools
import random
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from world_core.errors import PageStoreError
from world_core.page_file import PageFile
from world_core.page_queries import PageQueries
from world_core.page_tables import page_tables
from world_core.urls import page_id

if TYPE_CHECKING:
    from tests.world_core.conftest import Place, Sample

QUERIES = PageQueries.of(page_tables())


@pytest.fixture
def path(sqlite_place: Place, sample: Sample) -> Path:
    sqlite_place.fill(*sample).close()
    return Path(sqlite_place.where)


@pytest.fixture
def file(path: Path) -> Iterator[PageFile]:
    opened = PageFile(path, "sample", 2, 5.0)
    yield opened
    opened.close()


@pytest.fixture
def engine(path: Path) -> Iterator[sa.Engine]:
    """Give SQLAlchemy's own way to the same file, to compare with."""
    made = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(path))
    yield made
    made.dispose()


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("summary", {}),
    ("find", {"id": page_id("https://a.example/1")}),
    ("find", {"id": "' OR 1=1 --"}),
    ("versions", {"page": 3}),
    ("metas", {"numbers": [5]}),
    ("metas", {"numbers": [5, 2, 9, 2]}),
    ("metas", {"numbers": list(range(40))}),
    ("read", {"version": 7}),
    ("read", {"version": 10**9}),
    ("page_range", {"low": 4, "high": 20}),
    ("alias_range", {"low": 4, "high": 20}),
    ("version_range", {"low": 4, "high": 20}),
    ("dead_range", {"low": 0, "high": 600}),
]


@pytest.mark.parametrize(("name", "values"), ASKED)
def test_rows_are_those_of_sqlalchemy(
    file: PageFile, engine: sa.Engine, name: str, values: dict[str, Any]
) -> None:
    statement = getattr(QUERIES, name)
    with engine.connect() as connection:
        wanted = [tuple(row) for row in connection.execute(statement, values)]
    for _ in range(2):
        assert [tuple(row) for row in file.rows(statement, values)] == wanted


def test_values_keep_their_types(file: PageFile) -> None:
    (row,) = file.rows(QUERIES.read, {"version": 4})
    kinds = [type(value) for value in row]
    assert kinds[:6] == [int, int, str, str, str, str]
    assert kinds[-3:] == [bytes, bytes, bytes]


def test_words_are_put_together_once_a_length(file: PageFile) -> None:
    for length in (1, 2, 3, 2, 1):
        file.rows(QUERIES.metas, {"numbers": list(range(length))})
        file.rows(QUERIES.read, {"version": length})
    assert len(file._texts) == 4


def test_a_statement_of_another_store_is_not_mistaken(file: PageFile) -> None:
    for number in range(50):
        literal: sa.Select[Any] = sa.select(sa.literal_column(str(number)))
        assert [tuple(row) for row in file.rows(literal, {})] == [(number,)]


def test_threads_share_the_connections(file: PageFile) -> None:
    barrier = threading.Barrier(8)

    def work(seed: int) -> bool:
        source = random.Random(seed)
        barrier.wait()
        good = True
        for _ in range(50):
            wanted = source.sample(range(40), 5)
            found = file.rows(QUERIES.metas, {"numbers": wanted})
            good &= sorted(row[0] for row in found) == sorted(wanted)
        return good

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
    assert file._free.qsize() == 2


def test_a_failed_call_gives_its_connection_back(file: PageFile) -> None:
    for _ in range(5):
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            file.rows(sa.text("SELECT * FROM absent"), {})
    assert file._free.qsize() == 2
    assert file.rows(QUERIES.versions, {"page": 0})


def test_a_file_that_went_is_an_error_of_sqlite(tmp_path: Path) -> None:
    file = PageFile(tmp_path / "none.sqlite", "gone", 1, 0.1)
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="unable to open"):
            file.rows(QUERIES.summary, {})


def test_waiting_ends_with_the_stores_name(path: Path) -> None:
    file = PageFile(path, "busy store", 1, 0.05)
    held = file._free.get_nowait()
    with pytest.raises(PageStoreError, match=r"busy store had no turn within 0\.05 s"):
        file.rows(QUERIES.summary, {})
    file._free.put(held)
    assert file.rows(QUERIES.summary, {})
    file.close()


def test_a_closed_file_answers_nothing_and_closes_what_is_at_work(path: Path) -> None:
    file = PageFile(path, "sample", 2, 5.0)
    file.rows(QUERIES.summary, {})
    closed: list[sqlite3.Connection] = []
    take = file._take

    def take_and_close() -> sqlite3.Connection | None:
        connection = take()
        assert connection is not None
        closed.append(connection)
        file.close()
        return connection

    file._take = take_and_close  # type: ignore[method-assign]
    assert file.rows(QUERIES.summary, {})
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        closed[0].execute("SELECT 1")
    file._take = take  # type: ignore[method-assign]
    with pytest.raises(PageStoreError, match="is closed"):
        file.rows(QUERIES.summary, {})
    file.close()


def test_files_with_odd_names_are_found(tmp_path: Path, path: Path) -> None:
    for name in itertools.chain("?#%& '", ["%41", "a b?c=d"]):
        copy = tmp_path / f"x{name}.sqlite"
        copy.write_bytes(path.read_bytes())
        file = PageFile(copy, "odd", 1, 1.0)
        assert file.rows(QUERIES.summary, {})
        file.close()
