"""Writes a page store in one go, in canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.schema import CreateSchema, CreateTable

from world_core.errors import BadInputError
from world_core.page_database import PageDatabase, make_durable, page_failures
from world_core.page_tables import (
    LAYOUT,
    PageCounts,
    checked_number,
    checked_text,
    packer,
    page_tables,
    version_row,
)
from world_core.types import DeadLink, PageRecord, VersionRecord
from world_core.urls import page_id

_BATCH_ROWS = 1024
_BATCH_CHARACTERS = 8 << 20


class PageWriter:
    """Writes pages and dead links; use it as a context manager.

    Nothing is to be seen before the end: an SQLite file is written beside its place and renamed (an
    older file there is replaced), PostgreSQL tables come in one transaction. When the block ends by
    an error, all is dropped. Equal input gives an SQLite file of equal bytes, given one version of
    SQLite and of the compressor. Memory does not grow with the number of pages.
    """

    def __init__(self, where: str | Path, *, schema: str | None = None) -> None:
        """Take the place: a path, or a ``postgresql+psycopg://`` address with a schema of its own.

        Raises:
            BadInputError: the address or the schema cannot be used.
        """
        place = PageDatabase.of(where, schema)
        self._name = place.name
        self._final = place.path
        self._part = place.path and place.path.with_name(f"{place.path.name}.part")
        self._place = replace(place, path=self._part)
        self._tables = page_tables(schema)
        self._packer = packer()
        self._rows: dict[sa.Table, list[dict[str, object]]] = {t: [] for t in self._tables.all}
        self._waiting = (0, 0)
        self._page_id = ""
        self._dead_key = ""
        self._counts = PageCounts(0, 0, 0, 0, 0, 0)
        self._connection: sa.Connection

    def __enter__(self) -> Self:
        """Make the tables.

        Raises:
            PageStoreError: the database failed.
            BadInputError: the PostgreSQL schema already holds a world.
            MissingPartError: psycopg is not installed.
        """
        with page_failures(self._name):
            if self._part is not None:
                self._part.unlink(missing_ok=True)
            self._connection = self._place.writer().connect()
            try:
                self._make_tables()
            except BaseException:
                self._drop()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish, or drop everything when the block raised.

        Raises:
            BadInputError: an address is a page, an alias or a dead link more than once.
            PageStoreError: the database failed.
        """
        if error is not None:
            self._drop()
            return
        with page_failures(self._name):
            try:
                self._finish()
            except BaseException:
                self._drop()
                raise

    def add(self, page: PageRecord) -> None:
        """Add the next page.

        Raises:
            BadInputError: out of order, versions missing or overlapping, a ``page_id`` that is not
                that of the key, or a value that no database can hold.
            PageStoreError: the database failed.
        """
        self._check_page(page)
        number, first = self._counts.pages, self._counts.versions
        versions = [
            version_row(first + place, number, version, self._packer)
            for place, version in enumerate(page.versions)
        ]
        aliases = [
            {"key_id": page_id(checked_text("alias", key)), "key": key, "page": number}
            for key in sorted(page.aliases)
        ]
        row = {
            "number": number,
            "page_id": page.page_id,
            "key": page.key,
            "url": checked_text("URL", page.url),
            "first_version": first,
            "version_count": len(versions),
        }
        # Nothing is counted before every check has passed, so a refused page leaves no trace.
        self._page_id = page.page_id
        self._rows[self._tables.pages].append(row)
        self._rows[self._tables.versions].extend(versions)
        self._rows[self._tables.aliases].extend(aliases)
        characters = sum(len(version.text) for version in page.versions)
        self._counts = replace(
            self._counts,
            pages=number + 1,
            versions=first + len(versions),
            aliases=self._counts.aliases + len(aliases),
            links=self._counts.links + sum(len(version.links) for version in page.versions),
            characters=self._counts.characters + characters,
        )
        self._flush_when_full(1 + len(versions) + len(aliases), characters)

    def add_dead(self, link: DeadLink) -> None:
        """Add the next dead link; they may come before, between or after pages.

        Raises:
            BadInputError: out of order, or a value that no database can hold.
            PageStoreError: the database failed.
        """
        if checked_text("key", link.key) <= self._dead_key:
            raise _disorder("dead link", link.key, self._dead_key)
        row = {
            "number": self._counts.dead_links,
            "key_id": page_id(link.key),
            "key": link.key,
            "url": checked_text("URL", link.url),
            "status": checked_number("status", link.status),
            "time": checked_number("capture time", link.time),
        }
        self._dead_key = link.key
        self._rows[self._tables.dead].append(row)
        self._counts = replace(self._counts, dead_links=self._counts.dead_links + 1)
        self._flush_when_full(1, 0)

    def _check_page(self, page: PageRecord) -> None:
        if page.page_id != page_id(checked_text("key", page.key)):
            raise BadInputError(
                f"The page id {page.page_id!a} is not that of {page.key!a}: {page_id(page.key)}.",
                hint="Take the page id from world_core.urls.page_id.",
            )
        if page.page_id <= self._page_id:
            raise _disorder("page", page.page_id, self._page_id)
        if not page.versions:
            raise BadInputError(f"The page {page.key!a} has no version.")
        if not page.key:
            raise BadInputError("A page has the empty key, which stands for no address.")
        _check_times(page.key, page.versions)

    def _flush_when_full(self, rows: int, characters: int) -> None:
        self._waiting = (self._waiting[0] + rows, self._waiting[1] + characters)
        if self._waiting[0] >= _BATCH_ROWS or self._waiting[1] >= _BATCH_CHARACTERS:
            with page_failures(self._name):
                self._flush()

    def _flush(self) -> None:
        for table, rows in self._rows.items():
            if rows:
                self._connection.execute(sa.insert(table), rows)
                rows.clear()
        self._waiting = (0, 0)

    def _make_tables(self) -> None:
        schema = self._tables.summary.schema
        if self._final is None:
            if sa.inspect(self._connection).has_table("summary", schema=schema):
                raise BadInputError(
                    f"There is a page store at {self._name} already; it is never overwritten.",
                    hint=f'Drop it first: DROP SCHEMA "{schema or "public"}" CASCADE.',
                )
            if schema is not None:
                self._connection.execute(CreateSchema(schema, if_not_exists=True))
        for table in self._tables.all:
            self._connection.execute(CreateTable(table))

    def _finish(self) -> None:
        self._flush()
        self._refuse_repeated_aliases()
        for table in self._tables.all:
            # Made now, not row by row: sorting once is faster. The order makes the file repeatable.
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                index.create(self._connection)
        self._refuse_shared_addresses()
        values = {"layout": LAYOUT, **asdict(self._counts)}
        self._connection.execute(
            sa.insert(self._tables.summary),
            [{"name": name, "value": value} for name, value in sorted(values.items())],
        )
        if self._final is None:
            for table in self._tables.all:
                name = self._connection.dialect.identifier_preparer.format_table(table)
                self._connection.execute(sa.text(f"ANALYZE {name}"))
        self._connection.commit()
        self._connection.close()
        if self._part is not None and self._final is not None:
            make_durable(self._part)
            self._part.replace(self._final)
            make_durable(self._final.parent)

    def _refuse_repeated_aliases(self) -> None:
        aliases = self._tables.aliases.c
        self._refuse(
            sa.select(sa.func.min(aliases.key))
            .group_by(aliases.key_id)
            .having(sa.func.count() > 1)
            .order_by(aliases.key_id),
            "an alias twice",
        )

    def _refuse_shared_addresses(self) -> None:
        pages, aliases, dead = (
            table.c for table in (self._tables.pages, self._tables.aliases, self._tables.dead)
        )
        for column, other, what in (
            (aliases.key_id, pages.page_id, "a page and an alias"),
            (dead.key_id, pages.page_id, "a page and a dead link"),
            (dead.key_id, aliases.key_id, "an alias and a dead link"),
        ):
            key = column.table.c.key
            joined = sa.join(column.table, other.table, column == other)
            self._refuse(sa.select(key).select_from(joined).order_by(column), what)

    def _refuse(self, statement: sa.Select[Any], what: str) -> None:
        key = self._connection.execute(statement.limit(1)).scalar()
        if key is not None:
            raise BadInputError(
                f"The address {key!a} is {what}; it can lead to one thing only.",
                hint="Resolve addresses before pages are stored.",
            )

    def _drop(self) -> None:
        """Give up what was written; an unfinished transaction ends with its connection."""
        self._connection.invalidate()
        self._connection.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)


def _check_times(key: str, versions: Sequence[VersionRecord]) -> None:
    """Refuse versions that are empty, out of order or valid at the same time."""
    end = None
    for version in versions:
        if version.valid_from >= version.valid_to:
            raise BadInputError(
                f"A version of {key!a} is valid from {version.valid_from} to {version.valid_to}, "
                "which is never."
            )
        if end is not None and version.valid_from < end:
            raise BadInputError(
                f"A version of {key!a} is valid from {version.valid_from}, "
                f"before the one before it ends at {end}."
            )
        end = version.valid_to


def _disorder(kind: str, found: str, before: str) -> BadInputError:
    return BadInputError(
        f"The {kind} {found!a} came after {before!a}; the order is strictly ascending.",
        hint="Sort pages by page id and dead links by key before they are stored.",
    )
