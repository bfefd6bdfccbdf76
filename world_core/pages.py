"""The page store: pages, versions, aliases, links and dead links, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from world_core.errors import PageStoreError
from world_core.page_database import PageDatabase, RowReader, page_failures
from world_core.page_queries import PageQueries
from world_core.page_tables import (
    LAYOUT,
    PageCounts,
    PageTables,
    page_tables,
    stored_version,
)
from world_core.types import DeadLink, PageRecord, StoredVersion, VersionMeta, VersionRecord
from world_core.urls import page_id

_CHUNK = 16
_DEAD_CHUNK = 512


class PageStore:
    """A page store open for reading, safe to use from several threads at once.

    Every failure of the database is a ``PageStoreError``; an absent page is ``None`` from ``find``
    and nothing else. A lost PostgreSQL server is found again by the first call after its return.
    """

    def __init__(self, reader: RowReader, tables: PageTables, name: str) -> None:
        """Read the summary; ``open`` is the way to make one."""
        self._reader = reader
        self._name = name
        self._queries = PageQueries.of(tables)
        self._counts = self._read_counts()

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        schema: str | None = None,
        connections: int = 8,
        patience: float = 30.0,
    ) -> PageStore:
        """Open a page store.

        Args:
            where: the path of an SQLite file, which is opened read-only and immutable, or a
                ``postgresql+psycopg://`` address.
            schema: the PostgreSQL schema of the world, see ``schema_of``.
            connections: how many calls the database works on at once; further ones wait.
            patience: seconds a call waits for a connection, and a PostgreSQL statement may take.

        Raises:
            PageStoreError: it is missing, unfinished, of another layout or cannot be reached.
            BadInputError: the address or the schema cannot be used.
            MissingPartError: psycopg is not installed.
        """
        place = PageDatabase.of(where, schema)
        reader = place.reader(connections, patience)
        try:
            return cls(reader, page_tables(schema), place.name)
        except BaseException:
            reader.close()
            raise

    def find(self, key: str) -> int | DeadLink | None:
        """Return the page number of a key or alias, its dead link, or None when it is unknown.

        Raises:
            PageStoreError: the database failed.
        """
        for page, stored, url, status, time in self._rows(self._queries.find, {"id": page_id(key)}):
            if stored == key:
                return int(page) if page >= 0 else DeadLink(stored, url, status, time)
        return None

    def versions(self, page: int) -> range:
        """Return the version numbers of a page in time order.

        Raises:
            PageStoreError: there is no such page, or the database failed.
        """
        self._check("page", page, self._counts.pages)
        first, count = self._row(self._queries.versions, "page", page)
        return range(first, first + count)

    def read(self, version: int) -> StoredVersion:
        """Return a version with text and links, in one query.

        Raises:
            PageStoreError: there is no such version, it is damaged, or the database failed.
        """
        self._check("version", version, self._counts.versions)
        return stored_version(self._row(self._queries.read, "version", version))

    def metas(self, versions: Sequence[int]) -> list[VersionMeta]:
        """Return what hits need of these versions, in the order asked, in one query.

        Raises:
            PageStoreError: there is no such version, or the database failed.
        """
        for version in versions:
            self._check("version", version, self._counts.versions)
        if not versions:
            return []
        wanted = [int(version) for version in versions]
        rows = self._rows(self._queries.metas, {"numbers": wanted})
        found = {row[0]: VersionMeta(*row) for row in rows}
        for version in wanted:
            if version not in found:
                raise self._gap("version", version)
        return [found[version] for version in wanted]

    def counts(self) -> PageCounts:
        """Return how much the store holds, as its writer counted."""
        return self._counts

    def pages(self) -> Iterator[PageRecord]:
        """Yield all pages in canonical order, in memory of a few pages.

        Raises:
            PageStoreError: a version is damaged, or the database failed.
        """
        for start in range(0, self._counts.pages, _CHUNK):
            yield from self._page_chunk(start, min(start + _CHUNK, self._counts.pages))

    def dead_links(self) -> Iterator[DeadLink]:
        """Yield all dead links in key order.

        Raises:
            PageStoreError: the database failed.
        """
        for start in range(0, self._counts.dead_links, _DEAD_CHUNK):
            end = min(start + _DEAD_CHUNK, self._counts.dead_links)
            rows = self._rows(self._queries.dead_range, {"low": start, "high": end})
            if len(rows) != end - start:
                raise self._gap("dead link", start + len(rows))
            for row in rows:
                yield DeadLink(*row)

    def ping(self) -> None:
        """Ask the database for something of this store, to see that it answers.

        Raises:
            PageStoreError: it does not.
        """
        self._read_counts()

    def close(self) -> None:
        """Release connections and files."""
        self._reader.close()

    def _rows(self, statement: sa.Executable, values: dict[str, Any]) -> Sequence[Sequence[Any]]:
        with page_failures(self._name):
            return self._reader.rows(statement, values)

    def _row(self, statement: sa.Executable, kind: str, number: int) -> Sequence[Any]:
        rows = self._rows(statement, {kind: int(number)})
        if not rows:
            raise self._gap(kind, number)
        return rows[0]

    def _gap(self, kind: str, number: int) -> PageStoreError:
        return PageStoreError(
            f"The page store {self._name} lost {kind} {number}.",
            hint="It is damaged: world-server check PATH.",
        )

    def _check(self, kind: str, number: int, count: int) -> None:
        if not 0 <= number < count:
            raise PageStoreError(
                f"The page store {self._name} has no {kind} {number}; it holds {count}.",
                hint="Index and page store are of different worlds: world-server check PATH.",
            )

    def _read_counts(self) -> PageCounts:
        found = {name: int(value) for name, value in self._rows(self._queries.summary, {})}
        names = {field.name for field in fields(PageCounts)}
        if found.pop("layout", None) != LAYOUT or set(found) != names:
            raise PageStoreError(
                f"The page store {self._name} is unfinished or not of layout {LAYOUT}.",
                hint="Run its build again: corpus-builder build.",
            )
        return PageCounts(**found)

    def _page_chunk(self, start: int, end: int) -> Iterator[PageRecord]:
        """Yield the pages of a range of numbers with three queries."""
        limits = {"low": start, "high": end}
        chunk = self._rows(self._queries.page_range, limits)
        if len(chunk) != end - start:
            raise self._gap("page", start + len(chunk))
        names = defaultdict(list)
        for page, key in self._rows(self._queries.alias_range, limits):
            names[page].append(key)
        first, last = chunk[0][4], chunk[-1][4] + chunk[-1][5]
        rows = iter(self._rows(self._queries.version_range, {"low": first, "high": last}))
        for number, identity, key, url, place, count in chunk:
            records = tuple(_record(stored_version(row)) for row in islice(rows, count))
            if len(records) != count:
                raise self._gap("version", place + len(records))
            yield PageRecord(identity, key, url, records, tuple(sorted(names[number])))


def _record(stored: StoredVersion) -> VersionRecord:
    meta = stored.meta
    return VersionRecord(
        title=meta.title,
        text=stored.text,
        language=meta.language,
        valid_from=meta.valid_from,
        valid_to=meta.valid_to,
        published=meta.published,
        modified=meta.modified,
        links=stored.links,
        mime=stored.mime,
    )
