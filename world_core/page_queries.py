"""The questions the page store asks its tables, put together once for each store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from world_core.page_tables import PageTables, body_columns, meta_columns


@dataclass(frozen=True, slots=True)
class PageQueries:
    """Prepared statements; a statement made anew for each call costs more than its answer.

    Attributes:
        summary: (name, value).
        find: by ``id``: (page, key, url, status, time), the page -1 for a dead link.
        versions: by ``page``: (first version, how many).
        metas: by ``numbers``: the columns of ``meta_columns``, in no order.
        read: by ``version``: those columns and the ones of ``body_columns``.
        page_range: by ``low`` and ``high``: rows of ``pages`` in order.
        alias_range: by page numbers ``low`` and ``high``: (page, key).
        version_range: by ``low`` and ``high``: as ``read``, in order.
        dead_range: by ``low`` and ``high``: (key, url, status, time) in order.
    """

    summary: sa.Executable
    find: sa.Executable
    versions: sa.Executable
    metas: sa.Executable
    read: sa.Executable
    page_range: sa.Executable
    alias_range: sa.Executable
    version_range: sa.Executable
    dead_range: sa.Executable

    @classmethod
    def of(cls, tables: PageTables) -> PageQueries:
        """Return the statements for these tables."""
        pages, aliases, versions = tables.pages.c, tables.aliases.c, tables.versions.c
        dead = tables.dead.c
        metas = sa.select(*meta_columns(tables)).join_from(
            tables.versions, tables.pages, versions.page == pages.number
        )
        bodies = metas.add_columns(*body_columns(tables))
        return cls(
            summary=sa.select(tables.summary),
            find=_find(tables),
            versions=sa.select(pages.first_version, pages.version_count).where(
                pages.number == _number("page")
            ),
            metas=metas.where(versions.number.in_(sa.bindparam("numbers", expanding=True))),
            read=bodies.where(versions.number == _number("version")),
            page_range=sa.select(tables.pages).where(_within(pages.number)).order_by(pages.number),
            alias_range=sa.select(aliases.page, aliases.key).where(_within(aliases.page)),
            version_range=bodies.where(_within(versions.number)).order_by(versions.number),
            dead_range=sa.select(dead.key, dead.url, dead.status, dead.time)
            .where(_within(dead.number))
            .order_by(dead.number),
        )


def _find(tables: PageTables) -> sa.Executable:
    """Return one statement of three indexed lookups, since an address stands in one table only."""
    pages, aliases, dead = tables.pages.c, tables.aliases.c, tables.dead.c
    wanted = sa.bindparam("id", type_=sa.Text)
    none, nothing = sa.literal_column("0", sa.BigInteger), sa.literal_column("''", sa.Text)
    no_page = sa.literal_column("-1", sa.BigInteger)
    return sa.union_all(
        sa.select(pages.number, pages.key, nothing, none, none).where(pages.page_id == wanted),
        sa.select(aliases.page, aliases.key, nothing, none, none).where(aliases.key_id == wanted),
        sa.select(no_page, dead.key, dead.url, dead.status, dead.time).where(dead.key_id == wanted),
    )


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


def _within(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    return sa.and_(column >= _number("low"), column < _number("high"))
